// Forms that add and change schedules.

import { openForm } from '../parts/dialog.js'
import { announce } from '../parts/dom.js'
import { formatDateTime } from '../parts/format.js'
import { taskFields } from './task-fields.js'

const FIELDS = ['name', 'queue_type', 'task_name', 'args', 'cron', 'every_seconds', 'time_zone']
const MORE = ['start_at', 'end_at', 'overlap', 'catch_up']

const settings = {
  cron: {
    label: 'Times (cron)',
    placeholder: '30 2 * * mon-fri',
    help: 'Minute, hour, day of month, month and day of week, or @daily. Leave it empty for an interval.',
  },
  every_seconds: { label: 'Or an interval in seconds', help: 'At least 60.' },
  time_zone: {
    help: 'Such as Europe/Berlin; for cron.',
    suggestions: typeof Intl.supportedValuesOf === 'function' ? ['UTC', ...Intl.supportedValuesOf('timeZone')] : undefined,
  },
  overlap: {
    label: 'If the last job has not ended',
    options: [
      ['skip', 'skip this time'],
      ['queue', 'add a job anyway'],
    ],
  },
  catch_up: {
    label: 'After an outage',
    options: [
      ['none', 'skip missed times'],
      ['last', 'run the latest missed time'],
    ],
  },
}

/** Opens the form of a new schedule. */
export async function addSchedule(api, account) {
  const created = await openForm('New schedule', {
    operation: 'POST /api/v1/schedules',
    fields: FIELDS,
    more: MORE,
    set: { ...settings, ...(await taskFields(account)) },
    submit: 'Create schedule',
  })
  if (created === null) return
  api.insert(created)
  announce(`${created.name} runs next ${formatDateTime(created.next_run_at)}`)
}

/** Opens the form that changes a schedule. */
export async function editSchedule(item, api, account) {
  const given = { queue: item.queue_type, task: item.task_name, args: item.args }
  await openForm(`Edit ${item.name}`, {
    operation: 'PATCH /api/v1/schedules/{schedule_id}',
    params: { schedule_id: item.id },
    fields: FIELDS,
    more: MORE,
    set: { ...settings, ...(await taskFields(account, given)) },
    values: item,
    // A value of one clears the other.
    prepare: ({ cron, every_seconds, ...json }) => ({ ...json, ...(cron ? { cron } : {}), ...(every_seconds ? { every_seconds } : {}) }),
    done: (changed) => {
      api.replace(changed)
      return `Saved ${changed.name}`
    },
  })
}
