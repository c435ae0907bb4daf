import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { writeTask } from '../../edge/cli/task-files.ts'

/** `new task` in a copy of the code. */

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'millrace-task-'))
after(() => rmSync(folder, { recursive: true }))
for (const path of ['sql', 'tasks', 'package.json', 'biome.json', 'Procfile'])
  cpSync(join(ROOT, path), join(folder, path), { recursive: true })
symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
mkdirSync(join(folder, 'test'))
const read = (path: string): string => readFileSync(join(folder, path), 'utf8')
const write = (name: string, queue?: string) => writeTask(folder, name, { queue, pool: 'io' })

test('a new task has the queue of its area, is listed and formatted, and its test passes', async () => {
  const grind = write('mill.grind')
  assert.deepEqual(grind.files, [
    'tasks/mill/grind.task.ts',
    'tasks/mill/grind.work.ts',
    'test/tasks/mill-grind.test.ts',
    'tasks/index.ts',
  ])
  assert.match(
    read('tasks/mill/grind.task.ts'),
    /name: 'mill\.grind',\n {2}queue: 'system',\n {2}pool: 'io',/,
  )
  // A reserved word, and dashes in the file names.
  const removed = write('blog.delete')
  const many = write('load_test.delete_all-old')
  assert.match(
    read('tasks/blog/delete.task.ts'),
    /export const deleteBlog = .*\n.*\n {2}queue: 'blog'|queue: 'system'/,
  )
  assert.equal(many.files[0], 'tasks/load-test/delete-all-old.task.ts')
  assert.match(read('tasks/index.ts'), /^import \{ grind \} from '\.\/mill\/grind\.task\.ts'$/m)
  assert.match(write('mill.sift', 'documents').test, /mill-sift/)
  assert.match(read('tasks/mill/sift.task.ts'), /queue: 'documents'/)
  // Reserved words of modules, and variables of the files that name the task.
  const odd = [
    'rag.eval',
    'documents.package',
    'mill.public',
    'mill.z',
    'mill.result',
    'mill.define_task',
  ].map((name) => write(name))
  assert.match(read('tasks/mill/result.task.ts'), /export const resultMill = /)
  const all = [grind, removed, many, ...odd]
  const tests = all.map(({ test }) => test)
  const node = [
    '--disable-warning=ExperimentalWarning',
    '--test',
    '--experimental-test-isolation=none',
    ...tests,
  ]
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  await run(process.execPath, node, { cwd: folder, env }).catch(({ stdout }) => assert.fail(stdout))
  const files = [...new Set(all.flatMap(({ files }) => files))]
  const biome = ['node_modules/@biomejs/biome/bin/biome', 'check', '--vcs-enabled=false', ...files]
  await run(process.execPath, biome, { cwd: folder }).catch(({ stderr }) => assert.fail(stderr))
})

test('an invalid or existing name or queue is refused, and nothing is written', () => {
  const before = [read('tasks/index.ts'), readdirSync(join(folder, 'tasks'))]
  writeFileSync(join(folder, 'tasks/system/taken.work.ts'), '// mine\n')
  for (const [name, queue, message] of [
    ['Mill.grind', undefined, /^The name of a task is AREA\.VERB in lower case/],
    ['mill', undefined, /^The name of a task is AREA\.VERB/],
    ['mill.grind2', undefined, /^The name of a task is AREA\.VERB/],
    ['../mill.grind', undefined, /^The name of a task is AREA\.VERB/],
    ['system.prune', undefined, /^The task system\.prune exists: tasks\/system\/prune\.task\.ts$/],
    ['system.taken', undefined, /^The file exists: tasks\/system\/taken\.work\.ts$/],
    [
      'posts.import',
      undefined,
      /^The names import and importPosts are taken: choose another name than posts\.import$/,
    ],
    [
      'mill.polish',
      'mill',
      /^--queue must be one of accounts, .*, not mill\. tasks\/README\.md explains how to add one\.$/,
    ],
  ] as const)
    assert.throws(() => write(name, queue), { message })
  assert.deepEqual([read('tasks/index.ts'), readdirSync(join(folder, 'tasks'))], before)
  assert.equal(read('tasks/system/taken.work.ts'), '// mine\n')
  assert.equal(existsSync(join(folder, 'tasks/system/taken.task.ts')), false)
  assert.throws(
    () => writeTask(join(folder, 'tasks'), 'mill.polish', { pool: 'io' }),
    /tasks has no tests: it is no checkout/,
  )
})
