// Editor of a template next to a live preview.

import { openDialog } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { form } from '../parts/form.js'
import { makePreview, samplesOf } from './preview.js'
import { CHANNEL_NAMES } from './states.js'

const PLACEHOLDER = /\{\{ {0,8}([a-z][a-z0-9_]{0,63}) {0,8}\}\}/g
const EMAIL_FIELDS = ['subject', 'html']

/** Opens the editor of a template, or of a new one if it is null. */
export async function editTemplate(template, templates) {
  const isNew = template === null
  const preview = makePreview()
  const variables = variablesInput(template?.variables ?? [])
  const made = form({
    operation: isNew ? 'POST /api/v1/comms/templates' : 'PUT /api/v1/comms/templates/{name}',
    params: { name: template?.name },
    fields: [...(isNew ? ['name'] : []), 'channel', 'subject', 'text', 'html', 'variables'],
    set: {
      name: { help: 'Lowercase letters, digits, dots and hyphens. A name such as account.verify replaces the text of that email.', isRequired: true, maxLength: 64 },
      channel: { options: ['email', 'sms'].map((channel) => [channel, CHANNEL_NAMES[channel]]), initial: 'email', isRequired: true },
      subject: { isPlain: true, help: undefined },
      text: { isLong: true, rows: 7, isPlain: true, help: 'Write {{name}} where a value goes.' },
      html: { label: 'HTML', isLong: true, rows: 7, inputType: undefined },
      variables: { input: () => variables, isPlain: true, help: 'A variable without a default needs a value in each message.' },
    },
    values: template ?? { channel: 'email' },
    submit: isNew ? 'Create template' : 'Save',
    busy: 'Saving…',
    prepare: (values) => withoutOthers(values),
    done: (saved) => {
      if (isNew) templates.insert(saved)
      else templates.replace(saved)
      node.close('done')
      return isNew ? `Created ${saved.name}` : `Saved ${saved.name}`
    },
  })
  const { node, closed } = openDialog(isNew ? 'New template' : `Template ${template.name}`, h('div', { class: 'editor' }, made.node, preview.node), { isWide: true })
  await made.load()
  const update = () => {
    const values = made.read()
    for (const name of EMAIL_FIELDS) made.input(name).control.closest('.field').hidden = values.channel === 'sms'
    variables.show(namesIn(withoutOthers(values)))
    preview.update({ name: template?.name ?? 'new', ...draftOf(withoutOthers(made.read())) })
  }
  made.node.addEventListener('input', update)
  made.node.addEventListener('change', update)
  update()
  made.focus()
  await closed
}

/** Opens a template for those who may not change it. */
export function showTemplate(template) {
  const preview = makePreview()
  openDialog(`Template ${template.name}`, preview.node, { isWide: true })
  preview.update({ name: template.name, variables: samplesOf(template.variables) })
}

/** Removes the fields of the other channel. */
const withoutOthers = (values) => Object.fromEntries(Object.entries(values).filter(([name]) => values.channel === 'email' || !EMAIL_FIELDS.includes(name)))

const namesIn = ({ subject = '', text = '', html = '' }) => [...new Set([...`${subject}\n${text}\n${html}`.matchAll(PLACEHOLDER)].map(([, name]) => name))]

const draftOf = ({ name, ...contents }) => ({ variables: samplesOf(contents.variables), contents })

/** Makes the list of variables: those that the text uses, and those that messages may still give. */
function variablesInput(saved) {
  const rows = h('div', { class: 'variables' })
  const note = h('span', { class: 'soft' }, 'The text has no variables.')
  const node = h('span', {}, rows, note)
  const inputs = new Map(saved.map((variable) => [variable.name, makeInput(variable)]))
  let shown = new Set(inputs.keys())
  const show = (names) => {
    for (const name of names) if (!inputs.has(name)) inputs.set(name, makeInput({ name }))
    // A variable that a message may already give stays declared.
    const declared = new Set([...saved.map(({ name }) => name), ...names])
    if (declared.size === shown.size && [...declared].every((name) => shown.has(name)) && rows.childElementCount === declared.size) return
    shown = declared
    rows.replaceChildren(...[...shown].map((name) => h('label', {}, h('code', {}, name), inputs.get(name))))
    note.hidden = shown.size > 0
  }
  const read = () => [...shown].map((name) => ({ name, ...(inputs.get(name).value !== '' && { default: inputs.get(name).value }) }))
  return { node, control: rows, isGroup: true, read, write: () => show([]), show }
}

const makeInput = (variable) => h('input', { autocomplete: 'off', maxlength: 500, placeholder: 'no default', 'aria-label': `Default of ${variable.name}`, value: variable.default })
