// Inputs of form fields. Each has its `node`, the `control` that gets the focus, `read()` and `write(value)`.

import { h } from './dom.js'

/** Returns the label of a field, from its name if the reference has none. */
export function labelOf({ name, label }) {
  const text = label ?? name.replaceAll('_', ' ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Makes the input for a field. */
export function makeInput(field) {
  if (field.input !== undefined) return field.input(field)
  if (field.type === 'boolean') return checkbox(field)
  if (field.type === 'enum') return choice(field)
  if (field.type === 'enums') return choices(field)
  if (field.type === 'object') return group(field)
  if (field.type === 'strings') return lines(field)
  if (field.type === 'json') return json(field)
  if (field.isLong || (field.maxLength ?? 0) > 2000) return longText(field)
  return simple(field)
}

const INPUT_TYPES = { email: 'email', uri: 'url', phone: 'tel', 'date-time': 'datetime-local', date: 'date' }
const wholeNumber = { integer: 1, number: 'any' }

function simple(field) {
  const isNumber = field.type in wholeNumber
  const control = h('input', {
    name: field.name,
    type: field.inputType ?? (isNumber ? 'number' : (INPUT_TYPES[field.format] ?? 'text')),
    required: field.isRequired,
    min: field.min,
    max: field.max > 1e15 ? undefined : field.max,
    step: isNumber ? wholeNumber[field.type] : undefined,
    minlength: field.minLength > 0 && !field.isRequired ? undefined : field.minLength,
    maxlength: field.maxLength,
    autocomplete: field.autocomplete ?? 'off',
    placeholder: field.placeholder,
    list: field.suggestions && `list-${field.name}`,
  })
  const read = () => {
    const text = control.value
    if (text === '') return undefined
    if (isNumber) return Number(text)
    return field.format === 'date-time' ? new Date(text).toISOString() : text
  }
  const write = (value) => {
    control.value = value === null || value === undefined ? '' : field.format === 'date-time' ? localTime(value) : value
  }
  const suggestions = field.suggestions && h('datalist', { id: `list-${field.name}` }, ...field.suggestions.map((value) => h('option', { value })))
  return { node: suggestions ? h('span', {}, control, suggestions) : control, control, read, write }
}

/** Returns an ISO time as the value of an input for local times. */
export function localTime(iso) {
  const time = new Date(iso)
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
}

function longText(field) {
  const control = h('textarea', { name: field.name, rows: field.rows ?? 5, required: field.isRequired, maxlength: field.maxLength, placeholder: field.placeholder })
  return { node: control, control, read: () => (control.value === '' ? undefined : control.value), write: (value) => (control.value = value ?? '') }
}

function lines(field) {
  const control = h('textarea', { name: field.name, rows: field.rows ?? 3, required: field.isRequired, placeholder: field.placeholder ?? 'One per line' })
  const read = () => {
    const values = control.value.split('\n').map((line) => line.trim()).filter((line) => line !== '')
    return values.length === 0 ? undefined : values
  }
  return { node: control, control, read, write: (value) => (control.value = (value ?? []).join('\n')) }
}

function json(field) {
  const control = h('textarea', { name: field.name, class: 'code', rows: field.rows ?? 4, required: field.isRequired, spellcheck: 'false', placeholder: 'JSON' })
  control.addEventListener('input', () => control.setCustomValidity(''))
  const read = () => {
    if (control.value.trim() === '') return undefined
    try {
      return JSON.parse(control.value)
    } catch {
      control.setCustomValidity('This is not valid JSON.')
      control.reportValidity()
      throw new Error('One field is not valid JSON')
    }
  }
  return { node: control, control, read, write: (value) => (control.value = value === null || value === undefined ? '' : JSON.stringify(value, null, 2)) }
}

function checkbox(field) {
  const control = h('input', { name: field.name, type: 'checkbox' })
  return { node: control, control, isBox: true, read: () => control.checked, write: (value) => (control.checked = value === true) }
}

/** Options are values, or `[value, text]` pairs. */
function choice(field) {
  const options = field.options.map((option) => (Array.isArray(option) ? option : [option, String(option).replaceAll('_', ' ')]))
  const none = field.isRequired && field.initial !== undefined ? [] : [h('option', { value: '' }, field.none ?? (field.isRequired ? 'Choose…' : '–'))]
  const control = h('select', { name: field.name, required: field.isRequired }, ...none, ...options.map(([value, text]) => h('option', { value }, text)))
  const read = () => {
    if (control.value === '') return undefined
    return options.find(([value]) => String(value) === control.value)[0]
  }
  return { node: control, control, read, write: (value) => (control.value = value ?? '') }
}

function choices(field) {
  const options = field.options.map((option) => (Array.isArray(option) ? option : [option, option]))
  const boxes = options.map(([value, text]) => [value, h('input', { type: 'checkbox', name: field.name, value }), text])
  const node = h('span', { class: 'choices' }, ...boxes.map(([, box, text]) => h('label', { class: 'box' }, box, text)))
  const read = () => {
    const values = boxes.filter(([, box]) => box.checked).map(([value]) => value)
    return values.length === 0 && !field.isRequired ? undefined : values
  }
  const write = (values) => boxes.forEach(([value, box]) => (box.checked = (values ?? []).includes(value)))
  return { node, control: boxes[0]?.[1] ?? node, isGroup: true, read, write }
}

function group(field) {
  // An optional group may stay empty, so the browser must not demand its fields.
  const parts = field.fields.map((inner) => [inner, makeInput(field.isRequired ? inner : { ...inner, isRequired: false })])
  const node = h('span', { class: 'group' }, ...parts.map(([inner, input]) => h('label', { class: input.isBox ? 'box' : '' }, input.isBox ? [input.node, labelOf(inner)] : null, input.isBox ? null : labelOf(inner), input.isBox ? null : input.node)))
  const read = () => {
    const values = Object.fromEntries(parts.map(([inner, input]) => [inner.name, input.read()]).filter(([, value]) => value !== undefined))
    return Object.keys(values).length === 0 ? undefined : values
  }
  const write = (value) => parts.forEach(([inner, input]) => input.write(value?.[inner.name]))
  return { node, control: parts[0]?.[1].control ?? node, isGroup: true, read, write }
}
