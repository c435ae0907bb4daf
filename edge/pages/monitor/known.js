// Queues, tasks and error codes that the account may use, for filters and forms. The page reads each source once.

import { call } from '../parts/api.js'

const once = (read) => {
  let reading = null
  return () => (reading ??= read())
}

const readTasks = once(() => call('GET', '/api/v1/tasks').catch(() => ({ tasks: [], queues: [] })))
const readWorkerQueues = once(() => call('GET', '/api/v1/worker-queues?limit=100').catch(() => []))
const readFailures = once(() => call('GET', '/api/v1/jobs/failures?seconds=604800').catch(() => ({ groups: [] })))
const readAllQueues = once(() => call('GET', '/api/v1/queues').catch(() => ({ queues: [] })))

const sorted = (values) => [...new Set(values)].toSorted((a, b) => a.localeCompare(b))

/** Returns the names of queues. Admins know all queues, others those to which they can add jobs. */
export async function queueNames(account) {
  if (account.role === 'admin') return sorted((await readAllQueues()).queues.map(({ queue }) => queue))
  const [{ queues }, own] = await Promise.all([readTasks(), readWorkerQueues()])
  return sorted([...queues.map(({ queue_type }) => queue_type), ...own.map(({ name }) => name)])
}

/** Returns the names of tasks as jobs have them, such as `system.noop` or `images/resize`. */
export async function taskNames() {
  const [{ tasks }, own, { groups }] = await Promise.all([readTasks(), readWorkerQueues(), readFailures()])
  const named = tasks.flatMap(({ task_name, queue_types }) => queue_types.map((queue) => `${queue}.${task_name}`))
  const declared = own.flatMap(({ name, tasks: its }) => its.map((task) => `${name}/${task.name}`))
  return sorted([...named, ...declared, ...groups.map(({ task }) => task)])
}

/** Returns the error codes of recent failures. */
export const errorCodes = async () => sorted((await readFailures()).groups.map(({ code }) => code))

/** Returns the tasks to which an account can add jobs: `{ task, queue, args }`, where `args` is a JSON Schema or null. */
export async function runnableTasks() {
  const [{ tasks }, own] = await Promise.all([readTasks(), readWorkerQueues()])
  const named = tasks.flatMap(({ task_name: task, queue_types, args }) => queue_types.map((queue) => ({ task, queue, args })))
  return [...own.flatMap(({ name: queue, tasks: its }) => its.map(({ name: task, args }) => ({ task, queue, args }))), ...named]
}
