// Forms made from the schema of a route.

import { call } from './api.js'
import { announce, h, isBusy, setBusy, setText } from './dom.js'
import { labelOf, makeInput } from './inputs.js'
import { readFields } from './schema.js'
import { failure, skeleton } from './states.js'

/**
 * Makes a form for a route. Options:
 * - `operation`: such as `PATCH /api/v1/orgs/{org_id}`, with `params` for its path;
 * - `fields`: names of the fields in order, all by default; `more`: names of fields behind "More";
 * - `set`: changes to fields by name, such as `label`, `help`, `options`, `isLong`, `inputType`, or `input`, which makes one;
 * - `values`: initial values. A PATCH sends only changed fields, and null for an emptied one;
 * - `prepare(values)`: the JSON to send; `send(json)`: replaces the call; `query`: its query string;
 * - `submit`: text of the button; `done(answer, values)`: returns the text to announce; `isRepeatable`: clears the form.
 */
export function form(options) {
  const { operation, submit = 'Save', values = {} } = options
  const problem = h('p', { class: 'bad', role: 'alert' })
  const button = h('button', { type: 'submit' }, submit)
  const body = h('div', { class: 'fields' }, skeleton(options.fields?.length ?? 3))
  const node = h('form', { class: 'form', onsubmit: (event) => sendForm(event) }, body, problem, h('div', { class: 'actions' }, button, ...(options.buttons ?? [])))
  let inputs = new Map()

  const load = async () => {
    try {
      const fields = await chooseFields(options)
      inputs = new Map(fields.map((field) => [field.name, makeField(field)]))
      const more = (options.more ?? []).map((name) => inputs.get(name)?.node).filter(Boolean)
      const shown = [...inputs].filter(([name]) => !options.more?.includes(name)).map(([, { node: field }]) => field)
      body.replaceChildren(...shown, ...(more.length > 0 ? [h('details', {}, h('summary', {}, 'More'), ...more)] : []))
      write(values)
    } catch (error) {
      body.replaceChildren(failure(error, load))
    }
  }
  const write = (given) => {
    for (const [name, { field, input }] of inputs) input.write(given[name] === undefined ? (field.initial ?? null) : given[name])
  }
  const read = () => {
    const read = [...inputs].map(([name, { input }]) => [name, input.read()])
    if (!operation.startsWith('PATCH ')) return Object.fromEntries(read.filter(([, value]) => value !== undefined))
    const changed = read.filter(([name, value]) => JSON.stringify(value ?? null) !== JSON.stringify(emptyAsNull(values[name])))
    return Object.fromEntries(changed.map(([name, value]) => [name, value ?? null]))
  }
  const sendForm = async (event) => {
    event.preventDefault()
    if (isBusy(button)) return
    showProblem(null)
    setBusy(button, options.busy ?? 'Sending…')
    try {
      const own = read()
      const json = options.prepare?.(own) ?? own
      const answer = await (options.send ?? sendJson)(json)
      if (options.isRepeatable) write({})
      const text = await options.done?.(answer, json)
      if (text) announce(text)
    } catch (error) {
      showProblem(error)
    } finally {
      button.removeAttribute('aria-disabled')
      setText(button, submit)
    }
  }
  const sendJson = (json) => {
    const [method, template] = operation.split(' ')
    const path = template.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(options.params[name]))
    return call(method, options.query ? `${path}?${options.query}` : path, { json })
  }
  const showProblem = (error) => {
    for (const { show } of inputs.values()) show(null)
    const elsewhere = []
    let first = null
    for (const { loc, msg } of error?.errors ?? []) {
      const found = inputs.get(loc.find((part) => inputs.has(part)))
      if (found === undefined) elsewhere.push(`${loc.slice(1).join('.')}: ${msg}`)
      else found.show(msg)
      first ??= found?.input.control
    }
    const text = first === undefined || first === null ? error?.message : ''
    setText(problem, elsewhere.length > 0 ? elsewhere.join('; ') : (text ?? ''))
    first?.focus()
  }
  return { node, load, write, read, showProblem, input: (name) => inputs.get(name)?.input, focus: () => inputs.values().next().value?.input.control.focus() }
}

const emptyAsNull = (value) => (value === undefined || value === '' || (Array.isArray(value) && value.length === 0) ? null : value)

async function chooseFields({ operation, fields, more = [], set = {} }) {
  const known = new Map((await readFields(operation)).map((field) => [field.name, field]))
  const names = fields === undefined ? [...known.keys()] : [...fields, ...more]
  return names.map((name) => ({ name, type: 'string', ...known.get(name), ...set[name] }))
}

let fieldCount = 0

/** Makes a labelled field with its help and its error. */
function makeField(field) {
  const input = makeInput(field)
  const id = `field-${++fieldCount}`
  const error = h('span', { class: 'bad', id: `${id}-error`, hidden: true })
  const help = field.help ? h('small', { class: 'soft', id: `${id}-help` }, field.help) : null
  const label = labelOf(field)
  const optional = field.isRequired || input.isBox || field.isPlain ? null : h('span', { class: 'soft' }, ' (optional)')
  if (help !== null) input.control.setAttribute('aria-describedby', help.id)
  const show = (text) => {
    error.hidden = text === null
    setText(error, text ?? '')
    input.control.toggleAttribute('aria-invalid', text !== null)
    if (text !== null) input.control.setAttribute('aria-invalid', 'true')
    const described = [help?.id, text === null ? null : error.id].filter(Boolean)
    if (described.length > 0) input.control.setAttribute('aria-describedby', described.join(' '))
  }
  const node = input.isGroup
    ? h('fieldset', { class: 'field' }, h('legend', {}, label, optional), help, input.node, error)
    : input.isBox
      ? h('div', { class: 'field' }, h('label', { class: 'box' }, input.node, label), help, error)
      : labelled(input, label, optional, help, error, id)
  return { field, input, node, show }
}

function labelled(input, label, optional, help, error, id) {
  input.control.id = id
  return h('div', { class: 'field' }, h('label', { for: id }, label, optional), help, input.node, error)
}
