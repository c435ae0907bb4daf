import { type Failure, fail } from '../../sql/errors.ts'
import type { Settings } from '../../tasks/platform/settings/settings.ts'
import { normalizePassword } from './normalize.ts'
import type { Passwords } from './passwords.ts'

// Only words of at least this length are removed, because any password may contain shorter ones.
const MIN_WORD_LENGTH = 4

/** Rejects a new password that the rules of this deployment forbid. @throws account.password_* */
export async function requireAllowedPassword(
  edge: { readonly settings: Settings; readonly passwords: Passwords },
  password: string,
  email: string,
): Promise<void> {
  const problem = await findPasswordProblem(edge, password, email)
  if (problem !== null) throw problem
}

/** Returns the reason why the rules of this deployment forbid a new password of an account; null if they allow it. */
export async function findPasswordProblem(
  { settings, passwords }: { readonly settings: Settings; readonly passwords: Passwords },
  typed: string,
  email: string,
): Promise<Failure | null> {
  const password = normalizePassword(typed)
  const { minLength, minClasses, refuseCommon } = settings.passwordRules
  if (refuseCommon && (await passwords.isCommon(password))) return fail('account.password_common')
  const remainder = refuseCommon
    ? removeWords(password, [email, email.split('@')[0]!, settings.projectName])
    : password
  if ([...remainder].length < minLength) return fail('account.password_short', { min: minLength })
  return countClasses(password) < minClasses ? fail('account.password_simple', { min: minClasses }) : null
}

/** Removes words, and spaces at both ends, which do not count towards the length. */
function removeWords(password: string, words: readonly string[]): string {
  let rest = password.trim().toLowerCase()
  for (const word of words) if (word.length >= MIN_WORD_LENGTH) rest = rest.replaceAll(word, '')
  return rest
}

/** Counts the character classes in a password: lower-case letters, upper-case letters, digits, others. */
function countClasses(password: string): number {
  const classes = [/\p{Ll}/u, /\p{Lu}/u, /\p{Nd}/u, /[^\p{Ll}\p{Lu}\p{Nd}]/u]
  return classes.filter((kind) => kind.test(password)).length
}
