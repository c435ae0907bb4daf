// Page of message templates. Admins change them; everybody who may send looks at them.

import { actionButton, button, offerUndo } from '../parts/actions.js'
import { call } from '../parts/api.js'
import { h } from '../parts/dom.js'
import { formatDateTime } from '../parts/format.js'
import { list } from '../parts/list.js'
import { clamped } from '../parts/table.js'
import { compose } from './compose.js'
import { editTemplate, showTemplate } from './editor.js'
import { CHANNEL_NAMES } from './states.js'

const PATH = '/api/v1/comms/templates'

export const page = ({ account }) => {
  const isAdmin = account.role === 'admin'
  return [
    list({
      title: 'Templates',
      path: PATH,
      key: ({ name }) => name,
      note: 'A template is a text with {{variables}}, which each message fills in.',
      empty: isAdmin ? 'There are no templates yet.' : 'There are no templates yet. Admins add them.',
      columns: [
        { name: 'Name', kind: 'name', show: ({ name }) => h('strong', {}, name) },
        { name: 'Channel', kind: 'figure', show: ({ channel }) => CHANNEL_NAMES[channel] },
        { name: 'Subject', kind: 'wide', show: ({ subject }) => clamped(subject) },
        { name: 'Variables', kind: 'text', show: ({ variables }) => clamped(variables.map(({ name }) => name).join(', ')) },
        { name: 'Changed', kind: 'number', show: ({ created_at, updated_at }) => formatDateTime(updated_at ?? created_at) },
      ],
      buttons: (templates) => [isAdmin && button('New template', () => editTemplate(null, templates), { kind: '' })].filter(Boolean),
      actions: (template, templates) => [
        openButton(isAdmin ? 'Edit' : 'View', template, (found) => (isAdmin ? editTemplate(found, templates) : showTemplate(found))),
        openButton('Use', template, async ({ channel, name }) => compose(channel, (await call('GET', '/api/v1/comms/status'))[channel], { template: name, isAdmin })),
        isAdmin && deleteButton(template, templates),
      ],
    }),
  ]
}

/** Makes a button that reads the whole template and runs `open` with it. */
const openButton = (text, { name }, open) => button(text, async () => open(await readTemplate(name)), { label: `${text} ${name}` })

const readTemplate = (name) => call('GET', `${PATH}/${encodeURIComponent(name)}`)

/** Deletes a template. Undo adds it again with the same contents. */
const deleteButton = ({ name }, templates) =>
  actionButton('Delete', 'Deleting…', `Delete ${name}`, async () => {
    const { created_at, updated_at, ...contents } = await readTemplate(name)
    await call('DELETE', `${PATH}/${encodeURIComponent(name)}`)
    templates.remove({ name })
    const json = Object.fromEntries(Object.entries(contents).filter(([, value]) => value !== null))
    offerUndo(`Deleted ${name}`, async () => templates.insert(await call('POST', PATH, { json })))
    return null
  })
