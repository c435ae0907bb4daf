// The rules for new passwords, as a sentence.

/** Describes the rules that `fetchSignInWays` returns; without them, those that always hold. */
export function describePassword({ min_length = 8, min_classes = 1, refuses_common = false } = {}) {
  const mix = min_classes > 1 ? ` Mix at least ${min_classes} of: lowercase letters, uppercase letters, digits, other characters.` : ''
  const common = refuses_common ? ' Your email address in it does not count, and common passwords are refused.' : ''
  return `At least ${min_length} characters.${mix}${common}`
}
