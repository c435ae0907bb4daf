import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createOperationsArea } from '../../edge/routes/operations.ts'
import { SETTING_NAMES } from '../../tasks/platform/settings/settings.ts'

/** Reads facts from the code that the deployment examples must match. */

export const ROOT = new URL('../../', import.meta.url)
export const readFileAt = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8')

export type Variables = Readonly<Record<string, string>>

interface Line {
  readonly env: Variables
  /** Node flags and the script. */
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
/** Lines of the Procfile by name. */
export const procfileLines = new Map(
  [...readFileAt('Procfile').matchAll(/^(\w+): exec (?:env )?(.*)$/gm)].map(
    ([, name, command]): [string, Line] => {
      const [env, words] = command!.split(NODE)
      return [name!, { env: parsePairs(env!), words: words!.trim().split(' ') }]
    },
  ),
)
/** Time in seconds that the slowest process takes to stop. */
export const STOP_SECONDS = Math.max(
  ...['edge/run.ts', 'workers/run.ts'].map(
    (file) => Number(/STOP_TIMEOUT_MS = ([\d_]+)/.exec(readFileAt(file))![1]!.replace('_', '')) / 1000,
  ),
)
/** Paths of the edge's operations routes, such as health checks. */
export const operationPaths: readonly string[] = createOperationsArea(() => []).routes.map(
  (route) => route.path,
)

/** Asserts that each variable is a setting, or is set by the Procfile. */
export function assertKnownNames(env: Readonly<Record<string, unknown>>, where: string): void {
  const known = new Set([
    ...SETTING_NAMES,
    ...[...procfileLines.values()].flatMap((line) => Object.keys(line.env)),
  ])
  for (const name of Object.keys(env)) assert.ok(known.has(name), `${where}: ${name}`)
}
