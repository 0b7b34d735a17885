// No arrow begins here.
