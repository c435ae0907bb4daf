import type { InputProblem } from '../../sql/errors.ts'

/** What no input may contain, whatever its schema: text that PostgreSQL can't store, too deep or too many values. */

type Loc = InputProblem['loc']

// JSON itself has no bounds, and whatever traverses a value (this file, schemas, the database) needs time and stack.
const DEEPEST = 64
const MAX_VALUES = 10_000

// An answer has the keys above each problem: without bounds, 190 KB of input became one of 500 MB.
const MAX_PROBLEMS = 100
const MAX_OF_KEY = 100

const TOO_DEEP = `must not be nested more than ${DEEPEST} deep`
const TOO_MANY = `must not have more than ${MAX_VALUES} keys and items in all`

/** The first problems of an input with their locations; `loc` is the part of the request that it came in. */
export function textProblems(value: unknown, loc: Loc): readonly InputProblem[] {
  const count = { left: MAX_VALUES }
  if (isSound(value, 1, count)) return []
  if (count.left < 0) return [{ loc, msg: TOO_MANY, type: 'too_big' }]
  const problems: InputProblem[] = []
  for (const problem of problemsOf(value, loc, 1)) if (problems.push(problem) === MAX_PROBLEMS) break
  return problems
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

/** NUL and lone surrogates: JSON can represent them, PostgreSQL can't. */
function flawOf(text: string): string | null {
  if (text.includes('\0')) return 'the character NUL'
  return text.isWellFormed() ? null : 'half a character'
}

/** The locations of the problems, once there are known to be some. */
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
      else yield* problemsOf(item, [...loc, Array.isArray(value) ? Number(key) : shown(key)], depth + 1)
    }
  }
}

const shown = (key: string): string => key.slice(0, MAX_OF_KEY)
