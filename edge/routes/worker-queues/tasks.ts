import type { Transaction } from '../../../sql/db.ts'
import { readWithin } from '../../../sql/db.ts'
import { fail } from '../../../sql/errors.ts'
import {
  countTasks,
  declareTasks,
  deleteTask,
  readWorkerTask,
  type TaskFields as StoredFields,
} from '../../../sql/worker-queues/tasks.ts'
import { findSchemaFlaw } from '../../../tasks/worker-queues/schema-rules.ts'
import type { Caller } from '../../pipeline/access/auth.ts'
import type { Edge } from '../../pipeline/context.ts'
import { failInvalidInput } from '../../pipeline/request/input.ts'
import { answerJson, route } from '../../pipeline/route.ts'
import { changeQueue, viewerOf } from './access.ts'
import { auditQueue } from './queues.ts'
import { TaskFields, TaskParams, WorkerTask } from './shapes.ts'

/** Routes of the tasks of a queue. */

/** Most tasks of a queue. */
const MAX_TASKS = 1000

export const taskRoutes = [
  route({
    method: 'put',
    path: '/:name/tasks/:task',
    allowsOrganizationKeys: true,
    summary: 'Declare a task of a worker queue',
    description: `Replaces an earlier declaration. Arguments are checked against \`args\` when a job is added, results against \`result\` \
when a worker reports them. A change holds for the next job or report; \`limit\` and \`max_tries\` hold for jobs that are added later.`,
    params: TaskParams,
    body: TaskFields,
    response: WorkerTask,
    errors: ['worker_queue.missing', 'worker_task.limit', 'org.forbidden'],
    handle: async (input) => {
      const { body, caller, edge, params } = input
      await checkSchemas(edge, caller, body, ['body'])
      return changeQueue(input, async (tx, queue) => {
        await storeTasks(tx, queue.name, [{ name: params.task, ...body }])
        await tx.run(auditQueue(input, 'worker_queue.task_declared', queue, { task: params.task }))
        const text = await readWithin(tx, readWorkerTask, [...viewerOf(caller), queue.name, params.task])
        return answerJson(text!)
      })
    },
  }),

  route({
    method: 'get',
    path: '/:name/tasks/:task',
    allowsOrganizationKeys: true,
    summary: 'Get the declaration of a task',
    params: TaskParams,
    response: WorkerTask,
    errors: ['worker_queue.missing', 'worker_task.missing'],
    handle: async ({ params, caller, reader }) => {
      const text = await reader.text(readWorkerTask, [...viewerOf(caller), params.name, params.task])
      if (text === null) throw fail('worker_task.missing')
      return answerJson(text)
    },
  }),

  route({
    method: 'delete',
    path: '/:name/tasks/:task',
    allowsOrganizationKeys: true,
    summary: 'Remove the declaration of a task',
    description: 'Its jobs remain. Unless the queue is open, no more can be added.',
    params: TaskParams,
    errors: ['worker_queue.missing', 'worker_task.missing', 'org.forbidden'],
    handle: (input) =>
      changeQueue<undefined>(input, async (tx, queue) => {
        const { task } = input.params
        if ((await tx.maybeOne(deleteTask(queue.name, task))) === null) throw fail('worker_task.missing')
        await tx.run(auditQueue(input, 'worker_queue.task_removed', queue, { task }))
        return undefined
      }),
  }),
]

/** Stores declarations. @throws fail('worker_task.limit') */
export async function storeTasks(
  tx: Transaction,
  queue: string,
  tasks: readonly StoredFields[],
): Promise<void> {
  await tx.run(declareTasks(queue, tasks))
  const { count } = await tx.one(countTasks(queue))
  if (count > MAX_TASKS) throw fail('worker_task.limit', { max: MAX_TASKS })
}

/** Checks the schemas of a declaration, which is at `path`. @throws fail('request.invalid') */
export async function checkSchemas(
  edge: Edge,
  caller: Caller,
  task: Pick<StoredFields, 'args' | 'result'>,
  path: readonly (string | number)[],
): Promise<void> {
  for (const field of ['args', 'result'] as const) {
    const schema = task[field] ?? null
    if (schema === null) continue
    const flaw = findSchemaFlaw(schema) ?? (await edge.schemas.compile(caller.ownerId ?? 0, schema))
    if (flaw !== null) throw failInvalidInput([{ loc: [...path, field], msg: flaw, type: 'custom' }])
  }
}
