import type { InputProblem } from '../../sql/errors.ts'

/** What no input may be, whatever its schema takes: text that PostgreSQL can't keep, and values that are deep or many. */

type Loc = InputProblem['loc']

// JSON itself has no bounds; what works through a value, here, in schemas and in the database, takes time and stack for it.
const DEEPEST = 64
const MOST = 10_000

const TOO_DEEP = `must not be nested more than ${DEEPEST} deep`
const TOO_MANY = `must not have more than ${MOST} keys and items in all`

/** What is wrong with an input, with the places; `loc` is the part of the request that it came in. */
export function textProblems(value: unknown, loc: Loc): readonly InputProblem[] {
  const count = { left: MOST }
  if (isSound(value, 1, count)) return []
  if (count.left < 0) return [{ loc, msg: TOO_MANY, type: 'too_big' }]
  return [...problemsOf(value, loc, 1)]
}

function isSound(value: unknown, depth: number, count: { left: number }): boolean {
  if (typeof value === 'string') return flawOf(value) === null
  if (typeof value !== 'object' || value === null) return true
  if (depth > DEEPEST) return false
  const given = value as Record<string, unknown>
  for (const key in given) {
    if (--count.left < 0 || flawOf(key) !== null || !isSound(given[key], depth + 1, count)) return false
  }
  return true
}

/** NUL, and a half of a surrogate pair: JSON can carry them, PostgreSQL can't. */
function flawOf(text: string): string | null {
  if (text.includes('\0')) return 'the character NUL'
  return text.isWellFormed() ? null : 'half a character'
}

/** Where the problems are, once it is known that there are some. */
function* problemsOf(value: unknown, loc: Loc, depth: number): Generator<InputProblem> {
  if (typeof value === 'string') {
    const flaw = flawOf(value)
    if (flaw !== null) yield { loc, msg: `must not hold ${flaw}`, type: 'invalid_format' }
  } else if (typeof value === 'object' && value !== null) {
    if (depth > DEEPEST) {
      yield { loc: loc.slice(0, 2), msg: TOO_DEEP, type: 'too_big' }
      return
    }
    for (const [key, item] of Object.entries(value)) {
      const flaw = flawOf(key)
      if (flaw !== null) yield { loc, msg: `must not have a key that holds ${flaw}`, type: 'invalid_key' }
      else yield* problemsOf(item, [...loc, Array.isArray(value) ? Number(key) : key], depth + 1)
    }
  }
}
