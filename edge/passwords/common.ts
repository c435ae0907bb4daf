import list from '@zxcvbn-ts/language-common/src/passwords.json' with { type: 'json' }

// Minimum length; the length rule already rejects shorter passwords.
const SHORTEST = 8
const COUNT = 10_000

/** The most common passwords of sufficient length, in lower case. The list is sorted by frequency. */
const COMMON: ReadonlySet<string> = new Set(list.filter(({ length }) => length >= SHORTEST).slice(0, COUNT))

/** True if a password is among the most common ones, ignoring case. */
export const isCommon = (password: string): boolean => COMMON.has(password.toLowerCase())
