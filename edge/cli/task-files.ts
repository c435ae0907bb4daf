import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { UsageError } from './io.ts'

/** Files of a new built-in task, as tasks/README.md describes them. */

export interface TaskOptions {
  readonly queue?: string | undefined
  readonly pool: 'io' | 'cpu' | 'children' | 'model'
}

export interface WrittenTask {
  readonly name: string
  /** Path of its test. */
  readonly test: string
  /** Paths of all new and changed files. */
  readonly files: readonly string[]
}

// The names that test/tasks/task.test.ts accepts.
const NAME = /^([a-z][a-z_-]*)\.([a-z][a-z_-]*)$/
// Words that no variable of a module may have as its name.
const RESERVED = new Set(
  `arguments await break case catch class const continue debugger default delete do else enum eval export extends false
  finally for function if implements import in instanceof interface let new null package private protected public return
  static super switch this throw true try typeof undefined var void while with yield`.split(/\s+/),
)
const INDEX = 'tasks/index.ts'

/**
 * Writes the files of a task below a root folder and lists the task.
 * @throws UsageError if the name is invalid or exists, a file exists, or there are no tests; then nothing is written.
 */
export function writeTask(root: string, name: string, { queue, pool }: TaskOptions): WrittenTask {
  // Images contain no tests.
  if (!existsSync(join(root, 'test')))
    throw new UsageError(`${root} has no tests: it is no checkout of the project`)
  const [, area, verb] = NAME.exec(name) ?? []
  if (area === undefined || verb === undefined)
    throw new UsageError(`The name of a task is AREA.VERB in lower case, such as mill.grind, not ${name}`)
  const declared = findDeclaration(root, name)
  if (declared !== null) throw new UsageError(`The task ${name} exists: ${declared}`)
  const index = readFileSync(join(root, INDEX), 'utf8')
  const [folder, file] = [area.replaceAll('_', '-'), verb.replaceAll('_', '-')]
  const identifier = chooseIdentifier(index, area, verb)
  const task = { name, folder, file, identifier, pool, queue: chooseQueue(root, folder, queue) }
  const test = `test/tasks/${folder}-${file}.test.ts`
  const contents: Readonly<Record<string, string>> = {
    [`tasks/${folder}/${file}.task.ts`]: fillTemplate('task', task),
    [`tasks/${folder}/${file}.work.ts`]: fillTemplate('work', task),
    [test]: fillTemplate('test', task),
  }
  for (const path of Object.keys(contents))
    if (existsSync(join(root, path))) throw new UsageError(`The file exists: ${path}`)
  const changedIndex = listTask(index, task)
  for (const [path, content] of Object.entries(contents)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content, { flag: 'wx' })
  }
  writeFileSync(join(root, INDEX), changedIndex)
  return { name, test, files: [...Object.keys(contents), INDEX] }
}

interface TaskParts {
  readonly name: string
  readonly folder: string
  readonly file: string
  readonly identifier: string
  readonly pool: TaskOptions['pool']
  readonly queue: string
}

/** Returns the file that declares a task; null if none does. */
function findDeclaration(root: string, name: string): string | null {
  const found = globSync('tasks/*/*.task.ts', { cwd: root }).find((path) =>
    readFileSync(join(root, path), 'utf8').includes(`name: '${name}'`),
  )
  return found ?? null
}

/**
 * Returns the verb as an identifier, with the area if the verb alone is reserved or a word of the files that use it.
 * @throws UsageError if both are.
 */
function chooseIdentifier(index: string, area: string, verb: string): string {
  const taken = new Set([index, readTemplate('task'), readTemplate('test')].join(' ').match(/\w+/g))
  const names = [toCamelCase(verb), toCamelCase(`${verb}_${area}`)]
  const free = names.find((name) => !RESERVED.has(name) && !taken.has(name))
  if (free === undefined)
    throw new UsageError(
      `The names ${names.join(' and ')} are taken: choose another name than ${area}.${verb}`,
    )
  return free
}

const toCamelCase = (name: string): string =>
  name.replace(/[_-]+([a-z]?)/g, (_, letter: string) => letter.toUpperCase())

/** Returns the given queue, that of another task of the area, or `system`. @throws UsageError */
function chooseQueue(root: string, folder: string, given: string | undefined): string {
  // The Procfile has a line for every queue.
  const queues = [...readFileSync(join(root, 'Procfile'), 'utf8').matchAll(/WORKER_QUEUES=(\S+)/g)].map(
    ([, name]) => name!,
  )
  if (given !== undefined && !queues.includes(given))
    throw new UsageError(
      `--queue must be one of ${queues.join(', ')}, not ${given}. tasks/README.md explains how to add one.`,
    )
  if (given !== undefined) return given
  const [first] = globSync(`tasks/${folder}/*.task.ts`, { cwd: root }).sort()
  const text = first === undefined ? '' : readFileSync(join(root, first), 'utf8')
  return /queue: '([^']+)'/.exec(text)?.[1] ?? 'system'
}

/** Returns tasks/index.ts with the import of a task in the order of paths, and its entry at the end of the list. */
function listTask(index: string, { folder, file, identifier }: TaskParts): string {
  const path = `./${folder}/${file}.task.ts`
  const line = `import { ${identifier} } from '${path}'\n`
  const lines = index.split(/(?<=\n)/)
  const last = lines.findLastIndex((text) => text.startsWith('import '))
  const next = lines.findIndex((text) => (/^import .* from '(.*)'$/m.exec(text)?.[1] ?? '') > path)
  lines.splice(next < 0 ? last + 1 : next, 0, line)
  const end = lines.findIndex((text, n) => n > last && text.startsWith(']'))
  lines.splice(end, 0, `  ${identifier},\n`)
  return lines.join('')
}

type Template = 'task' | 'work' | 'test'

const readTemplate = (name: Template): string =>
  readFileSync(new URL(`templates/${name}.txt`, import.meta.url), 'utf8')

/** Returns a file of `templates/` with the parts of a task in place of their names. */
function fillTemplate(name: Template, task: TaskParts): string {
  const { folder, file, identifier } = task
  const paths = { findTask: '../../tasks/index.ts', [identifier]: `../../tasks/${folder}/${file}.task.ts` }
  const imports = Object.entries(paths)
    .sort(([, a], [, b]) => (a < b ? -1 : 1))
    .map(([imported, path]) => `import { ${imported} } from '${path}'`)
  const parts: Readonly<Record<string, string>> = { ...task, imports: imports.join('\n') }
  return readTemplate(name).replace(/\{\{(\w+)\}\}/g, (_, part: string) => parts[part]!)
}
