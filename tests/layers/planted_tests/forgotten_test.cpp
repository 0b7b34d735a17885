// Named nowhere.
