import { parseArgs } from 'node:util'
import { findNearestName } from '../../tasks/platform/nearest-name.ts'
import type { Command, Options, Values } from './command.ts'
import { UsageError } from './io.ts'

/** Checks of arguments, and the help. */

export const COMMON_OPTIONS = {
  url: { value: 'URL', about: 'address of the service; default MILLRACE_URL, or http://127.0.0.1:8000' },
  'api-key': { value: 'KEY', about: 'API key or token; default MILLRACE_KEY' },
  json: { about: 'write JSON for programs, an object a line' },
  help: { about: 'show this help' },
} as const satisfies Options

const SHORT_NAMES: Readonly<Record<string, string>> = { h: 'help' }

export interface Parsed {
  readonly values: Values
  readonly args: readonly string[]
}

/** @throws UsageError for an unknown or repeated option, a missing value or a wrong number of arguments. */
export function parseArguments(words: readonly string[], { args: wanted, options }: Command): Parsed {
  const known: Options = { ...options, ...COMMON_OPTIONS }
  const { tokens } = parseArgs({
    args: [...words],
    options: Object.fromEntries(
      Object.entries(known).map(([name, { value }]) => [name, { type: value ? 'string' : 'boolean' }]),
    ),
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const values: Record<string, string | true> = {}
  const args: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') args.push(token.value)
    if (token.kind !== 'option') continue
    const name = SHORT_NAMES[token.name] ?? token.name
    const option = known[name]
    if (option === undefined) throw new UsageError(`Unknown option ${token.rawName}${suggest(name, known)}`)
    // Two values could mean either of both.
    if (option.value !== undefined && values[name] !== undefined)
      throw new UsageError(`--${name} is given twice`)
    values[name] = checkValue(name, option.value, token)
  }
  if (values.help === undefined) checkCount(args, wanted)
  return { values: values as Values, args }
}

function checkValue(
  name: string,
  wanted: string | undefined,
  { value, inlineValue }: { readonly value?: string | undefined; readonly inlineValue?: boolean | undefined },
): string | true {
  if (wanted === undefined) {
    if (value !== undefined) throw new UsageError(`--${name} takes no value`)
    return true
  }
  if (value === undefined || (!inlineValue && /^-./.test(value)))
    throw new UsageError(`--${name} needs a value: --${name} ${wanted}`)
  return value
}

function checkCount(args: readonly string[], wanted: string): void {
  const names = wanted.split(' ').filter((name) => name !== '')
  const missing = names[args.length]
  if (missing !== undefined) throw new UsageError(`${missing.replace('…', '')} is missing`)
  if (args.length > names.length && !wanted.endsWith('…'))
    throw new UsageError(`Unexpected argument: ${args[names.length]}`)
}

/** Returns the end of a message about an unknown name: the nearest known one, if any is near. */
function suggest(name: string, known: Options): string {
  const nearest = findNearestName(name, Object.keys(known))
  return nearest === null ? '' : `; did you mean --${nearest}?`
}

/** Returns the help of a command. */
export function formatHelp(name: string, { args, about, options, notes, example, scopes }: Command): string {
  const format = (list: Options) =>
    formatPairs(
      Object.entries(list).map(([option, { value, about }]) => [
        `--${option}${value === undefined ? '' : ` ${value}`}`,
        about,
      ]),
    )
  return [
    `Usage: npx millrace ${[name, args].filter((part) => part !== '').join(' ')} [options]\n`,
    `${about}${notes === undefined ? '' : `\n${notes}`}\n`,
    ...(Object.keys(options).length === 0 ? [] : [`${format(options)}\n`]),
    `${format(scopes.length === 0 ? { help: COMMON_OPTIONS.help } : COMMON_OPTIONS)}\n`,
    ...(scopes.length === 0 ? [] : [`A key needs the ${formatScopes(scopes)}.\n`]),
    `Example: npx millrace ${example}\n`,
  ].join('\n')
}

/** Returns scopes such as `scope jobs:read` or `scopes jobs:read, blog:read`. */
export const formatScopes = (scopes: readonly string[]): string =>
  `${scopes.length === 1 ? 'scope' : 'scopes'} ${scopes.join(', ')}`

/** Returns lines of two aligned columns. */
export function formatPairs(pairs: readonly (readonly [string, string])[]): string {
  const width = Math.max(...pairs.map(([left]) => left.length))
  return pairs.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`).join('\n')
}

/** Returns an integer. @throws UsageError */
export function parseCount(name: string, text: string | undefined, fallback: number, most: number): number {
  const count = Number(text ?? fallback)
  if (!Number.isInteger(count) || count < 1 || count > most)
    throw new UsageError(`--${name} must be an integer from 1 to ${most}, not ${text}`)
  return count
}

const UNIT_SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const

/** Returns the seconds of a duration such as 90, 90s, 10m, 2h or 1d. @throws UsageError */
export function parseDuration(name: string, text: string): number {
  const [, count, unit] = /^(\d{1,9}(?:\.\d{1,3})?)([smhd]?)$/.exec(text) ?? []
  if (count === undefined)
    throw new UsageError(`--${name} must be a duration such as 30s, 10m, 2h or 1d, not ${text}`)
  return Number(count) * UNIT_SECONDS[(unit || 's') as keyof typeof UNIT_SECONDS]
}

/** Returns a value that is in `known`, or undefined if there is none. @throws UsageError for any other value. */
export function parseChoice<T extends string>(
  name: string,
  text: string | undefined,
  known: readonly T[],
): T | undefined {
  if (text !== undefined && !known.includes(text as T))
    throw new UsageError(`--${name} must be one of ${known.join(', ')}, not ${text}`)
  return text as T | undefined
}
