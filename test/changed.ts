import { execFileSync } from 'node:child_process'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { basename, extname, posix } from 'node:path'
import { areaOf, listAllFiles, ROOT } from './files.ts'
import { findImports } from './sql/structure-parse.ts'

/**
 * Finds the test files whose imports lead to a changed file, for `npm test -- --changed`. It takes seconds and may miss
 * a test, whereas `npm run check` runs them all.
 */

// Modules that import all areas. Through them, a test of one area would reach every other area.
const REGISTRIES: ReadonlySet<string> = new Set([
  'edge/routes/index.ts',
  'tasks/index.ts',
  'workers/children/all-work.ts',
  'workers/providers/index.ts',
])
// Imported by every test that uses the migrated schema.
const DATABASE_MODULE = 'test/database.ts'
const MIGRATED_PATHS = /^sql\/(migrations\/|\w+\/(functions\/|tables\.sql|seeds\.sql))/
const FUNCTION_PATH = /^sql\/\w+\/functions\/(\w+)\.sql$/
const FILE_STRINGS = /(['"`])([\w./-]*\.\w+)\1/g

/** Files that differ from a commit, as paths from the root: work tree and untracked files included. */
export function listChangedFiles(base: string): string[] {
  const git = (...args: string[]): string[] =>
    execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' }).split('\n').filter(Boolean)
  return [...git('diff', '--name-only', base), ...git('ls-files', '--others', '--exclude-standard')]
}

/** Test files that these changes affect. A file that no source names affects all tests. */
export function findAffectedTests(changed: readonly string[]): ReadonlySet<string> {
  read ??= readGraph()
  const graph = read
  const tests = listAllFiles()
  const found = new Set<string>()
  for (const file of changed) {
    const users = findUsers(file, graph)
    const words = new Set(file.split(/[/.-]/))
    const concerned = tests.filter(
      (one) => one === file || isReachable(one, users, graph, words.has(areaOf(one))),
    )
    for (const one of concerned.length === 0 ? tests : concerned) found.add(one)
  }
  return found
}

interface Source {
  readonly text: string
  /** Project files that it imports or names in a string, such as a script that it starts. */
  readonly named: readonly string[]
}
type Graph = ReadonlyMap<string, Source>
let read: Graph | undefined

function readGraph(): Graph {
  const files = globSync('{sql,tasks,edge,workers,test}/**/*.ts', { cwd: ROOT })
  return new Map(
    files.map((file) => {
      const text = readFileSync(posix.join(ROOT, file), 'utf8')
      const targets = [
        // Type imports load nothing: the compiler checks them.
        ...findImports(text).flatMap(({ target, erased }) => (erased ? [] : [target])),
        ...[...text.matchAll(FILE_STRINGS)].map(([, , path]) => path!),
      ]
      return [file, { text, named: [...new Set(targets.flatMap((target) => listTargetPaths(file, target)))] }]
    }),
  )
}

/** The file that `target` names, relative to the file's folder or to the root; empty if there is none. */
const listTargetPaths = (file: string, target: string): string[] =>
  [posix.join(posix.dirname(file), target), posix.normalize(target)].filter((path) => existsInProject(path))

const existingPaths = new Map<string, boolean>()

function existsInProject(path: string): boolean {
  let isKnown = existingPaths.get(path)
  if (isKnown === undefined) {
    isKnown = !path.startsWith('..') && !path.startsWith('/') && existsSync(posix.join(ROOT, path))
    existingPaths.set(path, isKnown)
  }
  return isKnown
}

/** Sources that represent a changed file: the file itself, or those that name it. */
function findUsers(file: string, graph: Graph): ReadonlySet<string> {
  if (graph.has(file)) return new Set([file])
  const users = [...graph].flatMap(([path, { named }]) => (named.includes(file) ? [path] : []))
  if (MIGRATED_PATHS.test(file)) return new Set([...users, ...findCallers(file, graph)])
  const name = basename(file)
  return new Set([...users, ...[...graph].flatMap(([path, { text }]) => (text.includes(name) ? [path] : []))])
}

/** Sources that call an SQL function, directly or through other functions. Other SQL affects every source with a database. */
function findCallers(file: string, graph: Graph): string[] {
  const name = FUNCTION_PATH.exec(file)?.[1]
  if (name === undefined) return [DATABASE_MODULE]
  const names = new Set([name])
  const functions = globSync('sql/*/functions/*.sql', { cwd: ROOT })
  const texts = new Map(
    functions.map((path) => [basename(path, extname(path)), readFileSync(posix.join(ROOT, path), 'utf8')]),
  )
  for (const called of names)
    for (const [caller, text] of texts) if (new RegExp(`\\b${called}\\b`).test(text)) names.add(caller)
  const called = new RegExp(`\\b(${[...names].join('|')})\\b`)
  const callers = [...graph].flatMap(([path, { text }]) => (called.test(text) ? [path] : []))
  // Trigger functions are named in no source file, so assume that all database tests use them.
  return callers.length === 0 ? [DATABASE_MODULE] : callers
}

/**
 * True if imports lead from a test to one of the files. Registries count only for tests of the same area and for direct
 * importers.
 */
function isReachable(test: string, files: ReadonlySet<string>, graph: Graph, isOfArea: boolean): boolean {
  const seen = new Set([test])
  for (const file of seen) {
    if (files.has(file)) return true
    const isSkipped = REGISTRIES.has(file) && !isOfArea && !graph.get(test)!.named.includes(file)
    if (!isSkipped) for (const next of graph.get(file)?.named ?? []) seen.add(next)
  }
  return false
}
