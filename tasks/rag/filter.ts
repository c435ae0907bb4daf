import { CHUNK_KEYS } from './metadata.ts'

/**
 * Filters on the metadata of chunks: equality by key, operators per key, and `$and`, `$or`, `$not`. They are compiled to
 * jsonpath predicates, which the database evaluates. Filters are checked before, by `findFilterProblems`.
 */

type Scalar = string | number | boolean | null

export interface Filter {
  readonly [key: string]: unknown
}

/** A problem of a filter, and the keys that lead to it. */
export interface FilterProblem {
  readonly path: readonly (string | number)[]
  readonly message: string
}

const MAX_PROBLEMS = 20
const MAX_DEPTH = 5
const TOO_DEEP_MESSAGE = `must be nested at most ${MAX_DEPTH} times`
const MAX_LIST_VALUES = 1000
/** Limits of a whole filter. */
const MAX_COUNTS = {
  conditions: 100,
  // Each comparison takes about 30 ns, for each file.
  'values in lists': 2000,
  // PostgreSQL keeps the 32 last regular expressions, and compiles others again for each file.
  'conditions with $contains': 20,
}
type Countable = keyof typeof MAX_COUNTS
const MAX_CONTAINED_LENGTH = 256
const MAX_KEY_LENGTH = 100
const MAX_TEXT_LENGTH = 4096

/** Returns the problem of an operand, or null. */
type CheckOperand = (operand: unknown) => string | null

const checkSize = (operand: unknown, maxLength: number): string | null => {
  // JSON's 1e999 is infinite in JavaScript, and would be null as a variable.
  if (typeof operand === 'number' && !Number.isFinite(operand)) return 'must be a finite number'
  return typeof operand === 'string' && operand.length > maxLength
    ? `must have at most ${maxLength} characters`
    : null
}
const checkScalar: CheckOperand = (operand) =>
  operand === null || ['string', 'number', 'boolean'].includes(typeof operand)
    ? checkSize(operand, MAX_TEXT_LENGTH)
    : 'must be a text, a number, a boolean or null'
const checkRange: CheckOperand = (operand) =>
  ['string', 'number'].includes(typeof operand)
    ? checkSize(operand, MAX_TEXT_LENGTH)
    : 'must be a text or a number'
const checkContained: CheckOperand = (operand) =>
  ['string', 'number', 'boolean'].includes(typeof operand)
    ? checkSize(operand, MAX_CONTAINED_LENGTH)
    : 'must be a text, a number or a boolean'
const checkList: CheckOperand = (operand) => {
  if (!Array.isArray(operand)) return 'must be a list'
  if (operand.length > MAX_LIST_VALUES) return `must have at most ${MAX_LIST_VALUES} values`
  return operand.map(checkScalar).find((problem) => problem !== null) ?? null
}
const checkBoolean: CheckOperand = (operand) => (typeof operand === 'boolean' ? null : 'must be a boolean')

type CompileOperator = (key: string, value: string, operand: unknown) => string
/** The check of an operand, and a predicate on a key (a path) with the operand's variable, or a bound of a range. */
type Operator = { readonly check: CheckOperand } & (
  | { readonly compile: CompileOperator }
  | { readonly bound: string }
)

/** Operators of a key. */
const OPERATORS: Readonly<Record<string, Operator>> = {
  $eq: { check: checkScalar, compile: (key, value) => isEqual(key, value) },
  $ne: { check: checkScalar, compile: (key, value) => negate(isEqual(key, value)) },
  $in: { check: checkList, compile: (key, value) => isEqual(key, `${value}[*]`) },
  $nin: { check: checkList, compile: (key, value) => negate(isEqual(key, `${value}[*]`)) },
  $gt: { check: checkRange, bound: '>' },
  $gte: { check: checkRange, bound: '>=' },
  $lt: { check: checkRange, bound: '<' },
  $lte: { check: checkRange, bound: '<=' },
  $contains: { check: checkContained, compile: compileContains },
  $exists: {
    check: checkBoolean,
    compile: (key, _value, operand) => (operand === true ? `exists(${key})` : negate(`exists(${key})`)),
  },
}
const OPERATOR_NAMES = [...Object.keys(OPERATORS), '$not'].join(', ')

const isObject = (value: unknown): value is Filter =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

type Path = FilterProblem['path']

/** Returns what is wrong with a filter: at most 20 problems. */
export function findFilterProblems(filter: unknown): readonly FilterProblem[] {
  const problems: FilterProblem[] = []
  for (const problem of checkFilter(filter, [], 0, new Map()))
    if (problems.push(problem) === MAX_PROBLEMS) break
  return problems
}

type Counts = Map<Countable, number>

function* checkFilter(filter: unknown, path: Path, depth: number, counts: Counts): Generator<FilterProblem> {
  if (!isObject(filter)) yield { path, message: 'must be an object of conditions' }
  else if (depth > MAX_DEPTH) yield { path, message: TOO_DEEP_MESSAGE }
  else {
    const entries = Object.entries(filter)
    if (entries.length === 0) yield* count('conditions', path, 1, counts)
    for (const [key, value] of entries) yield* checkEntry(key, value, [...path, key], depth, counts)
  }
}

function* checkEntry(
  key: string,
  value: unknown,
  ...[path, depth, counts]: [Path, number, Counts]
): Generator<FilterProblem> {
  if (key === '$not') yield* checkFilter(value, path, depth + 1, counts)
  else if (key === '$and' || key === '$or') {
    if (!Array.isArray(value) || value.length === 0) yield { path, message: 'must be a list of filters' }
    else for (const [i, inner] of value.entries()) yield* checkFilter(inner, [...path, i], depth + 1, counts)
  } else if (key.startsWith('$'))
    yield { path, message: 'must be $and, $or or $not, or be in a condition on a key' }
  else if (key.length > MAX_KEY_LENGTH)
    yield { path, message: `must have at most ${MAX_KEY_LENGTH} characters` }
  else yield* checkCondition(value, path, depth, counts)
}

function* checkCondition(
  value: unknown,
  path: Path,
  depth: number,
  counts: Counts,
): Generator<FilterProblem> {
  if (depth > MAX_DEPTH) yield { path, message: TOO_DEEP_MESSAGE }
  else if (Array.isArray(value))
    yield { path, message: 'must be a value or an object of operators; use $in for a list' }
  else if (isObject(value)) {
    const operators = Object.entries(value)
    if (operators.length === 0) yield { path, message: 'must have an operator' }
    for (const [operator, operand] of operators) {
      const inner = [...path, operator]
      if (operator === '$not') yield* checkCondition(operand, inner, depth + 1, counts)
      else yield* checkOperator(operator, operand, inner, counts)
    }
  } else yield* checkOperator('$eq', value, path, counts)
}

function* checkOperator(
  operator: string,
  operand: unknown,
  path: Path,
  counts: Counts,
): Generator<FilterProblem> {
  if (!Object.hasOwn(OPERATORS, operator)) {
    yield { path, message: `is no operator; the operators are ${OPERATOR_NAMES}` }
    return
  }
  const message = OPERATORS[operator]!.check(operand)
  if (message !== null) yield { path, message }
  yield* count('conditions', path, 1, counts)
  if (operator === '$contains') yield* count('conditions with $contains', path, 1, counts)
  if (Array.isArray(operand)) yield* count('values in lists', path, operand.length, counts)
}

/** Counts parts of a filter; yields a problem when they exceed their limit. */
function* count(what: Countable, path: Path, added: number, counts: Counts): Generator<FilterProblem> {
  const [before, max] = [counts.get(what) ?? 0, MAX_COUNTS[what]]
  counts.set(what, before + added)
  if (before <= max && before + added > max)
    yield { path, message: `the filter must have at most ${max} ${what}` }
}

/** A filter as jsonpath predicates. Both must hold; null holds for all. */
export interface CompiledFilter {
  /** Reads only metadata of files. */
  readonly ofFile: string | null
  /** Reads metadata of chunks, and perhaps of files. */
  readonly ofChunk: string | null
  /** The values of the variables of both, as JSON. */
  readonly variables: string
}

/** Compiles a filter that has no problems. */
export function compileFilter(filter: Filter): CompiledFilter {
  const variables: Record<string, unknown> = {}
  const addVariable: AddVariable = (value) => {
    const name = `v${Object.keys(variables).length}`
    variables[name] = value
    return `$${name}`
  }
  const { file = [], chunk = [] } = Object.groupBy(listConjuncts(filter), (conjunct) =>
    readsChunk(conjunct) ? 'chunk' : 'file',
  )
  const compile = (conjuncts: readonly Filter[]): string | null =>
    conjuncts.length === 0 ? null : compileAll(conjuncts, addVariable)
  return { ofFile: compile(file), ofChunk: compile(chunk), variables: JSON.stringify(variables) }
}

/** Returns the filters that must all hold for a filter to hold. */
const listConjuncts = (filter: Filter): readonly Filter[] =>
  Object.entries(filter).flatMap(([key, value]) =>
    key === '$and' ? (value as readonly Filter[]).flatMap(listConjuncts) : [{ [key]: value }],
  )

/** True if a filter reads a key that differs between the chunks of a file. */
function readsChunk(filter: Filter): boolean {
  return Object.entries(filter).some(([key, value]) => {
    if (key === '$not') return readsChunk(value as Filter)
    return key === '$and' || key === '$or'
      ? (value as readonly Filter[]).some(readsChunk)
      : CHUNK_KEYS.has(key)
  })
}

/** Adds a value and returns the variable that has it. */
type AddVariable = (value: unknown) => string

const compileAll = (filters: readonly Filter[], addVariable: AddVariable): string =>
  join(
    filters.map((filter) => compileEntries(filter, addVariable)),
    '&&',
  )

function compileEntries(filter: Filter, addVariable: AddVariable): string {
  const predicates = Object.entries(filter).map(([key, value]) => {
    if (key === '$not') return negate(compileEntries(value as Filter, addVariable))
    if (key === '$and') return compileAll(value as readonly Filter[], addVariable)
    if (key === '$or')
      return join(
        (value as readonly Filter[]).map((inner) => compileEntries(inner, addVariable)),
        '||',
      )
    return compileCondition(`$.${JSON.stringify(key)}`, value, addVariable)
  })
  return join(predicates, '&&')
}

function compileCondition(key: string, condition: unknown, addVariable: AddVariable): string {
  const operators = Object.entries(isObject(condition) ? condition : { $eq: condition as Scalar })
  const predicates: string[] = []
  const bounds: string[] = []
  for (const [name, operand] of operators) {
    if (name === '$not') {
      predicates.push(negate(compileCondition(key, operand, addVariable)))
      continue
    }
    const operator = OPERATORS[name]!
    const value = addVariable(operand)
    if ('bound' in operator) bounds.push(`@ ${operator.bound} ${value}`)
    else predicates.push(operator.compile(key, value, operand))
  }
  // The same element of a list must be within all bounds.
  if (bounds.length > 0) predicates.push(findElement(key, bounds.join(' && ')))
  return join(predicates, '&&')
}

const join = (predicates: readonly string[], operator: '&&' | '||'): string =>
  predicates.length === 0 ? '(1 == 1)' : `(${predicates.join(` ${operator} `)})`

const negate = (predicate: string): string => `!(${predicate})`

// A filter expression reads the elements of an array one by one. It turns the unknown result of a comparison of different
// types into false, so that negations hold for it.
const findElement = (key: string, condition: string): string => `exists(${key} ? (${condition}))`
const isEqual = (key: string, value: string): string => findElement(key, `@ == ${value}`)

/** A list contains the value as a member, a text as a part. */
function compileContains(key: string, value: string, operand: unknown): string {
  const isMember = `(${key}.type() == "array" && ${isEqual(key, value)})`
  if (typeof operand !== 'string') return isMember
  const isPart = `(${key}.type() == "string" && ${findElement(key, `@ like_regex ${JSON.stringify(operand)} flag "q"`)})`
  return `(${isMember} || ${isPart})`
}
