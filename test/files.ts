import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, relative, resolve } from 'node:path'
import type { Depth } from './runs.ts'

/** Selects and orders the test files of a run. */

// Rings that `npm test` runs. The others are `flow`, which starts, kills and upgrades real services, `browser`, and `long`,
// which has corpora, fuzzing and nemesis.
const QUICK_RINGS = ['sql', 'tasks', 'edge', 'workers']
const RINGS = [...QUICK_RINGS, 'flow', 'browser', 'long']
const LONGEST_RINGS: ReadonlySet<string> = new Set(['workers', 'flow', 'browser'])
export const ROOT = resolve(import.meta.dirname, '..')

/** Returns all test files of the rings, as paths from the root. */
export const listAllFiles = (): string[] => listFiles(RINGS)

/**
 * Returns the test files that `names` select. A name is a ring (`edge`), an area (`documents`, in every ring) or a
 * file. Without names, depth `quick` selects the rings of `npm test`. Depth `fixed` selects the ring `long` and the
 * randomized tests of the quick rings. Depth `long` selects the ring `long` and all randomized tests.
 *
 * @throws if a name matches nothing.
 */
export function selectFiles(names: readonly string[], depth: Depth): string[] {
  const all = () => listFiles(depth === 'quick' ? QUICK_RINGS : RINGS)
  const chosen = names.length === 0 ? all() : findFiles(names)
  if (depth === 'quick') return chosen
  return chosen.filter((file) => ringOf(file) === 'long' || testsMoreAt(file, depth))
}

const listFiles = (rings: readonly string[]): string[] =>
  globSync(`test/{${rings}}/**/*.test.ts`, { cwd: ROOT }).sort()

function findFiles(names: readonly string[]): string[] {
  const all = listAllFiles()
  const chosen = names.flatMap((name) => {
    if (existsSync(resolve(name)) && name.endsWith('.ts')) return [relative(ROOT, resolve(name))]
    const found = all.filter((file) => ringOf(file) === name || isOfArea(basename(file), name))
    if (found.length === 0)
      throw new Error(`No test is named ${name}: give a ring (${RINGS.join(', ')}), an area or a file`)
    return found
  })
  return [...new Set(chosen)]
}

const ringOf = (file: string): string => file.split('/')[1]!

/** Returns the first word of a file's name: `blog` for `test/edge/blog-posts.test.ts`. */
export const areaOf = (file: string): string => basename(file).split(/[-.]/)[0]!

const isOfArea = (file: string, area: string): boolean =>
  file.startsWith(`${area}.`) || file.startsWith(`${area}-`)

/** True if a file has more to test at this depth. Files that start services have more only at depth `long`. */
function testsMoreAt(file: string, depth: Depth): boolean {
  const text = readFileSync(resolve(ROOT, file), 'utf8')
  if (!text.includes('/runs.ts')) return false
  return (
    depth === 'long' ||
    (QUICK_RINGS.includes(ringOf(file)) && /\b(createRunOptions|countRounds)\(|\bSEED\b/.test(text))
  )
}

/**
 * Returns the files in the order in which processes claim them. Rings alternate, so that I/O-bound files run next to
 * CPU-bound ones. Rings with the longest files finish early, so that no process ends with a long file.
 */
export function interleaveRings(files: readonly string[]): string[] {
  const rings = Map.groupBy(files, ringOf)
  const turns = [...rings].flatMap(([name, ring]) =>
    ring.map((file, n) => ({ file, turn: (n / ring.length) * (LONGEST_RINGS.has(name) ? 0.85 : 1) })),
  )
  return turns.sort((a, b) => a.turn - b.turn).map(({ file }) => file)
}
