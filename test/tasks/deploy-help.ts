import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { operations } from '../../edge/routes/operations.ts'
import { SETTING_NAMES } from '../../tasks/settings.ts'

/** Facts of the code that tests compare with the deployment examples. */

export const ROOT = new URL('../../', import.meta.url)
export const readFileAt = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8')

export type Variables = Readonly<Record<string, string>>

interface Line {
  readonly env: Variables
  /** Node's flags and its script. */
  readonly words: readonly string[]
}

export const parsePairs = (words: string): Variables =>
  Object.fromEntries(
    words
      .split(' ')
      .filter((word) => word !== '')
      .map((word) => word.split('=') as [string, string]),
  )

export const NODE = 'node_modules/.bin/node'
/** The Procfile's lines by name. */
export const procfile = new Map(
  [...readFileAt('Procfile').matchAll(/^(\w+): exec (?:env )?(.*)$/gm)].map(
    ([, name, command]): [string, Line] => {
      const [env, words] = command!.split(NODE)
      return [name!, { env: parsePairs(env!), words: words!.trim().split(' ') }]
    },
  ),
)
/** Time that a process takes to stop, in seconds. */
export const STOP_SECONDS = Math.max(
  ...['edge/run.ts', 'workers/run.ts'].map(
    (file) => Number(/STOP_MS = ([\d_]+)/.exec(readFileAt(file))![1]!.replace('_', '')) / 1000,
  ),
)
/** Paths for operators. */
export const paths: readonly string[] = operations(() => []).routes.map((route) => route.path)

/** Asserts that each environment name is a setting or set by the Procfile. */
export function assertKnownNames(env: Readonly<Record<string, unknown>>, where: string): void {
  const known = new Set([
    ...SETTING_NAMES,
    ...[...procfile.values()].flatMap((line) => Object.keys(line.env)),
  ])
  for (const name of Object.keys(env)) assert.ok(known.has(name), `${where}: ${name}`)
}
