int guarded(int (*work)()) {
  try {
    return work();
  } catch (...) {
    return 0;
  }
}
