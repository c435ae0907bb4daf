import { type DeclaredTask, readDeclaredTasks } from '../../sql/worker-queues/tasks.ts'
import { isNamedQueue } from '../../tasks/load-test/on-queues.ts'
import { type DeclaredTasks, indexDeclared } from '../../tasks/worker-queues/declared.ts'
import { formatJobName } from '../../tasks/worker-queues/names.ts'
import type { Caller } from '../pipeline/access/auth.ts'
import type { Edge } from '../pipeline/context.ts'
import { failInvalidInput } from '../pipeline/request/input.ts'
import { viewerOf } from './worker-queues/access.ts'

/** The tasks of worker queues that requests name. */

/** A request that names a task, and its place in the body. */
export interface NamedTask {
  readonly task_name: string
  readonly queue_type: string
  readonly args: unknown
  readonly path: readonly (string | number)[]
}

/**
 * Reads the tasks of worker queues that the requests name, and checks the arguments against their schemas.
 * @throws fail('request.invalid') for the first arguments that do not match.
 */
export async function findDeclaredTasks(
  edge: Edge,
  caller: Caller,
  requests: readonly NamedTask[],
): Promise<DeclaredTasks> {
  const wanted = requests.filter(({ queue_type }) => !isNamedQueue(queue_type))
  if (wanted.length === 0) return new Map()
  const groups = [
    ...Map.groupBy(wanted, ({ queue_type, task_name }) => formatJobName(queue_type, task_name)).values(),
  ]
  const text = await edge.reader.text(readDeclaredTasks, [
    ...viewerOf(caller),
    groups.map(([first]) => first!.queue_type),
    groups.map(([first]) => first!.task_name),
  ])
  const found = indexDeclared(JSON.parse(text!) as DeclaredTask[])
  for (const group of groups) await checkArgs(edge, caller, found, group)
  return found
}

/** Checks the arguments of requests for the same task. */
async function checkArgs(
  { schemas }: Edge,
  caller: Caller,
  found: DeclaredTasks,
  group: readonly NamedTask[],
): Promise<void> {
  const { queue_type, task_name } = group[0]!
  const schema = found.get(formatJobName(queue_type, task_name))?.args ?? null
  if (schema === null) return
  const texts = group.map(({ args }) => JSON.stringify(args))
  const problems = await schemas.check(caller.ownerId ?? 0, schema, texts)
  const index = problems.findIndex((problem) => problem !== null)
  if (index < 0) return
  const { path, message } = problems[index]!
  throw failInvalidInput([
    { loc: ['body', ...group[index]!.path, 'args', ...path], msg: message, type: 'json_schema' },
  ])
}
