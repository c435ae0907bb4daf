import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, relative, resolve } from 'node:path'
import type { Depth } from './runs.ts'

/** Selects the test files of a run and orders them. */

// The rings of `npm test`. The others start, kill and upgrade real services (`flow`), or are corpora, fuzz and nemesis (`long`).
const QUICK_RINGS = ['sql', 'tasks', 'edge', 'workers']
const RINGS = [...QUICK_RINGS, 'flow', 'long']
const LONGEST: ReadonlySet<string> = new Set(['workers', 'flow'])
export const ROOT = resolve(import.meta.dirname, '..')

/** All test files of the rings, as paths from the root. */
export const allFiles = (): string[] => filesOf(RINGS)

/**
 * The test files that `names` select: a ring (`edge`), an area (`documents`: its files in every ring) or a file. Without names,
 * `quick` selects the rings of `npm test`. The other depths select the ring `long` and randomized tests: `fixed` those of the
 * quick rings, `long` all.
 *
 * @throws if a name matches nothing.
 */
export function selectFiles(names: readonly string[], depth: Depth): string[] {
  const all = () => filesOf(depth === 'quick' ? QUICK_RINGS : RINGS)
  const chosen = names.length === 0 ? all() : findFiles(names)
  if (depth === 'quick') return chosen
  return chosen.filter((file) => ringOf(file) === 'long' || testsMoreAt(file, depth))
}

const filesOf = (rings: readonly string[]): string[] =>
  globSync(`test/{${rings}}/**/*.test.ts`, { cwd: ROOT }).sort()

function findFiles(names: readonly string[]): string[] {
  const all = allFiles()
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

/** The first word of a file's name: `blog` of `test/edge/blog-posts.test.ts`. */
export const areaOf = (file: string): string => basename(file).split(/[-.]/)[0]!

const isOfArea = (file: string, area: string): boolean =>
  file.startsWith(`${area}.`) || file.startsWith(`${area}-`)

/** True if a file tests more at this depth. Files that start services do so only at depth `long`. */
function testsMoreAt(file: string, depth: Depth): boolean {
  const text = readFileSync(resolve(ROOT, file), 'utf8')
  if (!text.includes('/runs.ts')) return false
  return depth === 'long' || (QUICK_RINGS.includes(ringOf(file)) && /\b(runs|rounds)\(|\bSEED\b/.test(text))
}

/**
 * The files in the order in which processes claim them. Rings alternate, so that files that wait run next to files that
 * compute. Rings with the longest files finish early, so that no process is left with a long file at the end.
 */
export function interleaveRings(files: readonly string[]): string[] {
  const rings = Map.groupBy(files, ringOf)
  const turns = [...rings].flatMap(([name, ring]) =>
    ring.map((file, n) => ({ file, turn: (n / ring.length) * (LONGEST.has(name) ? 0.85 : 1) })),
  )
  return turns.sort((a, b) => a.turn - b.turn).map(({ file }) => file)
}
