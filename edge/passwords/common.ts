import list from '@zxcvbn-ts/language-common/src/passwords.json' with { type: 'json' }

// The list omits shorter passwords, because the length rule already rejects them.
const MIN_LENGTH = 8
const MAX_COMMON_PASSWORDS = 10_000

/** The most common passwords of sufficient length, in lower case. The list is sorted by frequency. */
const COMMON_PASSWORDS: ReadonlySet<string> = new Set(
  list.filter(({ length }) => length >= MIN_LENGTH).slice(0, MAX_COMMON_PASSWORDS),
)

/** True if a password is among the most common ones. Ignores case, and spaces at both ends. */
export const isCommonPassword = (password: string): boolean =>
  COMMON_PASSWORDS.has(password.trim().toLowerCase())
