import list from '@zxcvbn-ts/language-common/src/passwords.json' with { type: 'json' }

// Others are refused for their length.
const SHORTEST = 8
const COUNT = 10_000

/** The most common ones that are long enough, in lower case; the list has the most common ones first. */
const COMMON: ReadonlySet<string> = new Set(list.filter(({ length }) => length >= SHORTEST).slice(0, COUNT))

/** True if a password is among the most common ones, in whichever case. */
export const isCommon = (password: string): boolean => COMMON.has(password.toLowerCase())
