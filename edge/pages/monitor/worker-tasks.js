// Dialog of the tasks of a worker queue: their declarations, and a form for each.

import { button } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { confirmAction, openDialog, openForm } from '../parts/dialog.js'
import { announce, h } from '../parts/dom.js'
import { formatCount } from '../parts/format.js'
import { labelOf } from '../parts/inputs.js'
import { list } from '../parts/list.js'

const settings = {
  args: { type: 'json', label: 'JSON Schema of the arguments', help: 'Jobs whose arguments do not match are rejected.', rows: 5 },
  result: { type: 'json', label: 'JSON Schema of the result', rows: 4 },
  max_tries: { label: 'Most tries', help: '' },
  timeout_seconds: { label: 'Time limit of an attempt in seconds', help: '3600 if empty.' },
  stall_seconds: { label: 'Time limit between two reports of progress in seconds', help: '' },
  limit: { label: 'Most jobs that run at a time', help: '' },
  secrets: { label: 'Paths of secrets', help: 'Such as smtp.password. Pages show them as ***.' },
}
const FIELDS = ['args', 'max_tries', 'timeout_seconds', 'limit', 'secrets']
const MORE = ['result', 'stall_seconds']

/** Opens the dialog. `changed` runs after each change. */
export function openTasks(queue, changed) {
  const path = `/api/v1/worker-queues/${queue.name}`
  const tasks = list({
    title: 'Tasks',
    name: 'tasks',
    path,
    // The route has no pages.
    pageSize: null,
    key: ({ name }) => name,
    items: (data) => data.tasks,
    empty: queue.open ? 'No task is declared. Jobs of any task are accepted.' : 'No task is declared, so no job can be added.',
    columns: [
      { name: 'Task', kind: 'name', show: ({ name }) => h('strong', {}, name) },
      {
        name: 'Arguments',
        kind: 'wide',
        show: ({ args }) => (args === null ? 'anything' : h('code', {}, Object.keys(args.properties ?? {}).join(', ') || 'a schema')),
      },
      { name: 'Tries', kind: 'number', show: ({ max_tries }) => max_tries },
      { name: 'Time limit', kind: 'number', show: ({ timeout_seconds }) => timeout_seconds && `${formatCount(timeout_seconds)} s` },
      { name: 'Limit', kind: 'number', show: ({ limit }) => limit },
    ],
    actions: (task) => [
      button('Edit', () => declare(task), { label: `Edit ${task.name}` }),
      button('Remove', () => removeTask(task).catch((error) => announce(error.message, { isBad: true })), { label: `Remove ${task.name}` }),
    ],
    buttons: () => [button('Declare a task', () => declare(null), { kind: '' })],
  })
  const saved = async (text) => {
    await Promise.all([tasks.load(), changed()])
    announce(text)
  }
  const declare = async (task) => {
    const name = { name: 'name', type: 'string', isRequired: true, maxLength: 100, help: 'Such as resize. Jobs are named QUEUE/TASK.' }
    let chosen = task?.name
    const done = await openForm(task === null ? `Declare a task of ${queue.name}` : `Edit ${task.name}`, {
      operation: 'PUT /api/v1/worker-queues/{name}/tasks/{task}',
      fields: [...(task === null ? ['name'] : []), ...FIELDS],
      more: MORE,
      set: { ...settings, name: { ...name, label: labelOf({ name: 'task name' }) } },
      values: task ?? {},
      prepare: ({ name: given, ...json }) => {
        chosen = given ?? chosen
        return json
      },
      send: (json) => call('PUT', `${path}/tasks/${encodeURIComponent(chosen)}`, { json }),
      submit: task === null ? 'Declare task' : 'Save',
    })
    if (done !== null) await saved(`Saved ${chosen}`)
  }
  const removeTask = async (task) => {
    const text = queue.open ? 'Its jobs stay valid, because the queue accepts undeclared tasks.' : 'No more jobs of it can be added. Its queued jobs stay.'
    if (!(await confirmAction(`Remove ${task.name}?`, text, 'Remove task'))) return
    await call('DELETE', `${path}/tasks/${encodeURIComponent(task.name)}`)
    await saved(`Removed ${task.name}`)
  }
  openDialog(`Tasks of ${queue.name}`, tasks.node, { isWide: true })
  return tasks.load()
}
