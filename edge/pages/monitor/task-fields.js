// Fields of forms that choose a queue, a task of it, and the task's arguments.

import { h } from '../parts/dom.js'
import { makeInput } from '../parts/inputs.js'
import { queueNames, runnableTasks } from './known.js'

const NAMED_FIRST = ['system', 'load_test']

/**
 * Returns the settings of the fields `queue_type`, `task_name` and `args` for `form()`. A choice of queue and task fills
 * in the defaults of its arguments, unless the person has changed them.
 */
export async function taskFields(account, { queue = 'system', task, args } = {}) {
  const [tasks, names] = await Promise.all([runnableTasks(), account.role === 'admin' ? [] : queueNames(account)])
  const queues = [...new Set([queue, ...tasks.map((one) => one.queue), ...names.filter((name) => !NAMED_FIRST.includes(name))])]
  const datalist = h('datalist', { id: 'tasks-of-queue' })
  const about = h('ul', { class: 'bare soft arguments' })
  const queueInput = makeInput({ name: 'queue_type', type: 'enum', options: queues, isRequired: true, initial: queue })
  const taskInput = makeInput({ name: 'task_name', type: 'string', isRequired: true, maxLength: 100 })
  const argsInput = makeInput({ name: 'args', type: 'json', rows: 5 })
  taskInput.control.setAttribute('list', datalist.id)
  let filled = ''
  const update = () => {
    const of = tasks.filter((one) => one.queue === queueInput.control.value)
    datalist.replaceChildren(...of.map((one) => h('option', { value: one.task })))
    const found = of.find((one) => one.task === taskInput.control.value)
    const properties = Object.entries(found?.args?.properties ?? {})
    about.replaceChildren(...properties.map(([name, schema]) => h('li', {}, h('code', {}, name), ` ${describe(schema)}`)))
    if (argsInput.control.value !== filled) return
    argsInput.write(Object.fromEntries(properties.filter(([, schema]) => schema.default !== undefined).map(([name, schema]) => [name, schema.default])))
    filled = argsInput.control.value
  }
  queueInput.control.addEventListener('change', update)
  taskInput.control.addEventListener('input', update)
  if (queue !== undefined) queueInput.write(queue)
  if (task !== undefined) taskInput.write(task)
  update()
  if (args !== undefined) argsInput.write(args)
  const fixed = (input, node = input.node) => ({
    ...input,
    node,
    write: (value) => (value === null || value === undefined ? undefined : [input.write(value), update()]),
  })
  return {
    queue_type: { label: 'Queue', isRequired: true, input: () => fixed(queueInput) },
    task_name: { label: 'Task', isRequired: true, input: () => fixed(taskInput, h('span', {}, taskInput.node, datalist)) },
    args: { label: 'Arguments', isPlain: true, help: 'A JSON object.', input: () => fixed(argsInput, h('span', {}, argsInput.node, about)) },
  }
}

/** Describes an argument by its description and its limits. */
function describe({ description, anyOf = [], ...schema }) {
  const { minimum, maximum, enum: values } = { ...anyOf.find(({ type }) => type !== 'null'), ...schema }
  const limits = values !== undefined ? values.join(', ') : minimum !== undefined && maximum !== undefined ? `${minimum} to ${maximum}` : ''
  return [description, limits].filter(Boolean).join(': ')
}
