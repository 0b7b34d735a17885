struct KernelStep {};
struct CopyStep {};
struct Step {
  using Run = std::variant<KernelStep, CopyStep>;
  Run run;
};
inline bool is_copy(const Step& step) { return std::holds_alternative<CopyStep>(step.run); }
