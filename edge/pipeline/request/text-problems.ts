import type { InputProblem } from '../../../sql/errors.ts'

/** Rejects text that PostgreSQL can't store, excessive nesting and too many values, independently of schemas. */

type Loc = InputProblem['loc']

// JSON itself has no limits, and every traversal (here, in schemas, in the database) needs time and stack.
const MAX_DEPTH = 64
const MAX_VALUES = 10_000

// An answer repeats the keys above each problem. Without these limits, 190 KB of input became an answer of 500 MB.
const MAX_PROBLEMS = 100
const MAX_KEY_LENGTH = 100

const TOO_DEEP_MESSAGE = `must not be nested more than ${MAX_DEPTH} levels deep`
const TOO_MANY_MESSAGE = `must not have more than ${MAX_VALUES} keys and items in total`

/**
 * Returns the first problems of an input, with their locations.
 * @param loc the part of the request that holds the input.
 */
export function findTextProblems(value: unknown, loc: Loc): readonly InputProblem[] {
  const count = { left: MAX_VALUES }
  if (isValid(value, 1, count)) return []
  if (count.left < 0) return [{ loc, msg: TOO_MANY_MESSAGE, type: 'too_big' }]
  const problems: InputProblem[] = []
  for (const problem of locateProblems(value, loc, 1)) if (problems.push(problem) === MAX_PROBLEMS) break
  return problems
}

function isValid(value: unknown, depth: number, count: { left: number }): boolean {
  if (typeof value === 'string') return findFlaw(value) === null
  if (typeof value !== 'object' || value === null) return true
  if (depth > MAX_DEPTH) return false
  const given = value as Record<string, unknown>
  for (const key in given) {
    if (--count.left < 0 || findFlaw(key) !== null || !isValid(given[key], depth + 1, count)) return false
  }
  return true
}

/** Describes a NUL or an unpaired surrogate, which JSON can represent but PostgreSQL cannot; null if there are none. */
function findFlaw(text: string): string | null {
  if (text.includes('\0')) return 'a NUL character'
  return text.isWellFormed() ? null : 'an unpaired surrogate'
}

/** Locates the problems. It is slower than {@link isValid}, so it runs only if there are some. */
function* locateProblems(value: unknown, loc: Loc, depth: number): Generator<InputProblem> {
  if (typeof value === 'string') {
    const flaw = findFlaw(value)
    if (flaw !== null) yield { loc, msg: `must not contain ${flaw}`, type: 'invalid_format' }
  } else if (typeof value === 'object' && value !== null) {
    if (depth > MAX_DEPTH) {
      yield { loc: loc.slice(0, 2), msg: TOO_DEEP_MESSAGE, type: 'too_big' }
      return
    }
    for (const [key, item] of Object.entries(value)) {
      const flaw = findFlaw(key)
      if (flaw !== null) yield { loc, msg: `must not have a key that contains ${flaw}`, type: 'invalid_key' }
      else
        yield* locateProblems(
          item,
          [...loc, Array.isArray(value) ? Number(key) : truncateKey(key)],
          depth + 1,
        )
    }
  }
}

const truncateKey = (key: string): string => key.slice(0, MAX_KEY_LENGTH)
