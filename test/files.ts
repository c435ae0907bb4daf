import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, relative, resolve } from 'node:path'

/** Which test files a run is about, and in which order. */

const RINGS = ['sql', 'tasks', 'edge', 'workers', 'flow']
const LONGEST: ReadonlySet<string> = new Set(['workers', 'flow'])
const ROOT = resolve(import.meta.dirname, '..')

/**
 * The files that `names` name: a ring (`edge`), an area (`documents`: every ring's files of it) or a file; all rings when
 * there are none. Of those in a long run only what goes on for longer there. @throws when a name finds nothing.
 */
export function chosenFiles(names: readonly string[], isLong: boolean): string[] {
  const chosen = filesNamed(names)
  return isLong
    ? chosen.filter((file) => readFileSync(resolve(ROOT, file), 'utf8').includes('/runs.ts'))
    : chosen
}

function filesNamed(names: readonly string[]): string[] {
  const all = globSync(`test/{${RINGS}}/**/*.test.ts`, { cwd: ROOT }).sort()
  if (names.length === 0) return all
  const chosen = names.flatMap((name) => {
    if (existsSync(resolve(name)) && name.endsWith('.ts')) return [relative(ROOT, resolve(name))]
    const found = all.filter((file) => file.startsWith(`test/${name}/`) || isOfArea(basename(file), name))
    if (found.length === 0)
      throw new Error(`No test is named ${name}: give a ring (${RINGS.join(', ')}), an area or a file`)
    return found
  })
  return [...new Set(chosen)]
}

const isOfArea = (file: string, area: string): boolean =>
  file.startsWith(`${area}.`) || file.startsWith(`${area}-`)

/**
 * The files in the order in which processes take them. The rings take turns: what waits in one runs beside what computes in
 * another. Those with the longest files come to their end first, so that no process is left with half a minute at the end.
 */
export function inTurns(files: readonly string[]): string[] {
  const rings = Map.groupBy(files, (file) => file.split('/')[1]!)
  const turns = [...rings].flatMap(([name, ring]) =>
    ring.map((file, n) => ({ file, turn: (n / ring.length) * (LONGEST.has(name) ? 0.85 : 1) })),
  )
  return turns.sort((a, b) => a.turn - b.turn).map(({ file }) => file)
}
