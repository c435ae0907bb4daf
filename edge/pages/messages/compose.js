// Forms that send emails, text messages and calls.

import { readList } from '../parts/api.js'
import { openDialog, openForm } from '../parts/dialog.js'
import { h } from '../parts/dom.js'
import { callAndWait } from '../parts/jobs.js'
import { makePreview, samplesOf } from './preview.js'
import { CHANNEL_NAMES } from './states.js'

const SEND_AT = { label: 'Send at', help: 'Leave it empty to send now. At most 30 days ahead.' }
const LINES = 'One address per line, such as ann@example.com or "Ann" <ann@example.com>'

/** Texts and fields of each channel. `own` are the fields that a template replaces. */
const FORMS = {
  email: {
    title: 'New email',
    operation: 'POST /api/v1/comms/email/send',
    fields: ['to', 'template', 'subject', 'text', 'variables', 'send_at'],
    more: ['html', 'cc', 'bcc', 'reply_to', 'from_email', 'attachments', 'stream', 'unsubscribe'],
    own: ['subject', 'text', 'html'],
    set: {
      to: { label: 'To', rows: 2, help: LINES },
      subject: { isPlain: true, help: undefined },
      text: { isLong: true, rows: 8, isPlain: true, help: undefined },
      html: { label: 'HTML', isLong: true, rows: 6, help: 'Readers whose program shows HTML see this instead of the text.' },
      cc: { rows: 2, help: LINES },
      bcc: { rows: 2, help: LINES },
      reply_to: { label: 'Reply to', help: undefined },
      from_email: { label: 'From', help: 'Default: the address of the service' },
      stream: { options: [['transactional', 'Transactional'], ['broadcast', 'Broadcast, such as a newsletter']], help: 'A broadcast has one recipient, who can unsubscribe.' },
      unsubscribe: { label: 'Add an unsubscribe link', help: 'Needs a single recipient.' },
    },
  },
  sms: {
    title: 'New text message',
    operation: 'POST /api/v1/comms/sms/send',
    fields: ['to', 'template', 'body', 'variables', 'send_at'],
    more: ['from'],
    own: ['body'],
    set: {
      to: { label: 'To', help: 'A number with its country code, such as +14155552671', inputType: 'tel' },
      body: { label: 'Text', isLong: true, rows: 5, isPlain: true, maxLength: 1600 },
      from: { label: 'From', inputType: 'text' },
    },
  },
  call: {
    title: 'New call',
    operation: 'POST /api/v1/comms/call',
    fields: ['to', 'script_url', 'send_at'],
    more: ['timeout'],
    own: [],
    set: {
      to: { label: 'To', help: 'A number with its country code, such as +14155552671', inputType: 'tel' },
      script_url: { label: 'Address of the script', help: 'The provider reads it when the call is answered. It must be TwiML.', inputType: 'url' },
      timeout: { label: 'Ring for', help: 'Seconds, from 5 to 600' },
    },
  },
}

/**
 * Opens the form of a channel. `channel` is its configuration, and `template` the name of a template to begin with.
 * Admins read how to set up a channel that is not configured.
 * Resolves to the answer, or null if nothing was sent.
 */
export async function compose(kind, channel, { template = null, isAdmin }) {
  if (channel?.configured === false) return explainSetup(kind, channel, isAdmin)
  const { title, own, set, ...rest } = FORMS[kind]
  const templates = own.length === 0 ? [] : (await readList('/api/v1/comms/templates?limit=200').catch(() => ({ items: [] }))).items.filter((one) => one.channel === kind)
  const state = { templates, chosen: templates.find(({ name }) => name === template) ?? null, own, preview: makePreview() }
  const documents = kind === 'email' ? await readDocuments() : []
  const inputs = { template: { isPlain: true, help: undefined, input: () => templateInput(state) }, variables: { input: () => variablesInput(state), isPlain: true, help: undefined }, attachments: { label: 'Attached documents', input: () => documentsInput(documents), help: 'Choose several with Ctrl or ⌘.' } }
  return openForm(title, {
    ...rest,
    more: rest.more.filter((name) => name !== 'attachments' || documents.length > 0),
    set: { ...set, ...inputs, send_at: SEND_AT },
    isWide: own.length > 0,
    values: { template: state.chosen?.name ?? null },
    submit: kind === 'call' ? 'Call' : 'Send',
    busy: 'Sending…',
    prepare: (values) => prepare(values, state),
    send: (json) => callAndWait('POST', FORMS[kind].operation.split(' ')[1], { json }),
    done: (answer) => describe(kind, answer),
  })
}

function prepare({ template, variables, unsubscribe, ...values }, { own, chosen }) {
  const kept = Object.entries(values).filter(([name]) => chosen === null || !own.includes(name))
  return { ...Object.fromEntries(kept), ...(unsubscribe === true && { unsubscribe }), ...(chosen !== null && { template: chosen.name, variables }) }
}

function describe(kind, { status, message }) {
  if (status === 'scheduled') return `${CHANNEL_NAMES[kind]} scheduled`
  return message ?? `${CHANNEL_NAMES[kind]} sent`
}

/** Makes the select of a template. It hides the fields that the template replaces. */
function templateInput(state) {
  const options = state.templates.map(({ name }) => h('option', { value: name }, name))
  const control = h('select', { name: 'template' }, h('option', { value: '' }, 'None: write the text here'), ...options)
  const show = () => {
    state.chosen = state.templates.find(({ name }) => name === control.value) ?? null
    for (const name of state.own) {
      const field = control.form?.elements.namedItem(name)?.closest('.field')
      if (field) field.hidden = state.chosen !== null
    }
    state.showVariables?.()
  }
  control.addEventListener('change', show)
  const write = (value) => {
    control.value = value ?? ''
    show()
  }
  return { node: control, control, read: () => control.value || undefined, write }
}

/** Makes the inputs of the chosen template's variables, next to a live preview. */
function variablesInput(state) {
  const fields = h('div', { class: 'fields' })
  const node = h('div', { class: 'filled' }, fields, state.preview.node)
  let inputs = []
  const read = () => Object.fromEntries(inputs.map(([name, input]) => [name, input.value]).filter(([, value]) => value !== ''))
  const update = () => state.preview.update({ name: state.chosen.name, variables: { ...samplesOf(state.chosen.variables), ...read() } })
  state.showVariables = () => {
    node.closest('.field').hidden = state.chosen === null
    if (state.chosen === null) return
    inputs = state.chosen.variables.map(({ name, default: initial }) => [name, h('input', { autocomplete: 'off', placeholder: initial, required: initial === undefined, oninput: update })])
    fields.replaceChildren(...inputs.map(([name, input]) => h('label', {}, name, input)))
    if (inputs.length === 0) fields.replaceChildren(h('p', { class: 'soft' }, 'This template has no variables.'))
    update()
  }
  return { node, control: fields, isGroup: true, read: () => (state.chosen === null ? undefined : read()), write: () => state.showVariables() }
}

async function readDocuments() {
  const { items } = await readList('/api/v1/documents?limit=100').catch(() => ({ items: [] }))
  return items
}

function documentsInput(documents) {
  const control = h('select', { name: 'attachments', multiple: true, size: Math.min(5, Math.max(2, documents.length)) }, ...documents.map(({ id, title }) => h('option', { value: id }, title)))
  const read = () => {
    const chosen = [...control.selectedOptions].map(({ value }) => ({ document_id: Number(value) }))
    return chosen.length === 0 ? undefined : chosen
  }
  return { node: control, control, read, write: () => {} }
}

/** Says how to set up a channel that is not configured. Resolves to null. */
async function explainSetup(kind, { missing }, isAdmin) {
  await openDialog(`${CHANNEL_NAMES[kind]}: not set up`, setupText(missing, isAdmin)).closed
  return null
}

/** Makes the text that tells an admin which settings a channel lacks, and others whom to ask. */
export const setupText = (missing, isAdmin) => (isAdmin ? h('p', {}, 'Set ', ...missing.flatMap((name, i) => [i === 0 ? '' : i === missing.length - 1 ? ' and ' : ', ', h('code', {}, name)]), ' in the environment of the service, then restart it.') : h('p', {}, 'Ask an admin of the service to set it up.'))
