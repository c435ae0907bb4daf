// Filters of a list. Their values are in the address of the page, so that a link or a reload shows the same rows.

import { withQuery } from './api.js'
import { h } from './dom.js'
import { localTime } from './inputs.js'

const WAIT_MS = 300

/**
 * Makes a bar of filters. Each is `{ name, label, type, options, suggestions, more }`:
 * - `name`: the query parameter of the route; `label`: its name on the page;
 * - `options`: values or `[value, text]` pairs for a select; a function that returns them may be asynchronous;
 * - `suggestions`: values or pairs for a datalist, or a function as above; `type`: the type of the input, `search` by default;
 * - `isMany`: takes several of the `options`, which become chips; the parameter is repeated;
 * - `isMore`: shown behind "More filters" until used.
 *
 * `onChange` runs after each change. With `name`, several lists of a page have their own parameters in the address.
 */
export function filterBar(filters, { name, title, onChange }) {
  const prefix = name === undefined ? '' : `${name}.`
  const address = () => new URLSearchParams(location.search)
  const inputs = filters.map((filter) => [filter, makeInput(filter, address().getAll(prefix + filter.name))])
  let sort = address().get(`${prefix}sort`)
  let timer = null
  const valueOf = ([{ type }, { control, read }]) => read?.() ?? (type === 'datetime-local' && control.value !== '' ? new Date(control.value).toISOString() : control.value.trim())
  const query = () => Object.fromEntries(inputs.map((pair) => [pair[0].name, valueOf(pair)]).filter(([, value]) => value.length > 0))
  const save = () => {
    const values = [...inputs.map((pair) => [pair[0].name, valueOf(pair)]), ['sort', sort]]
    replaceAddress(Object.fromEntries(values.map(([key, value]) => [prefix + key, value])))
  }
  // Leaving an input reports a change that was applied while typing. Applying it twice would clear the selection of rows.
  let applied = JSON.stringify(query())
  const changed = () => {
    clearTimeout(timer)
    const values = JSON.stringify(query())
    if (values === applied) return
    applied = values
    save()
    onChange()
  }
  const clear = () => {
    for (const [, { control, write }] of inputs) write === undefined ? (control.value = '') : write([])
    changed()
    inputs[0]?.[1].control.focus()
  }
  for (const [, { control }] of inputs) {
    control.addEventListener('change', changed)
    control.addEventListener('input', () => {
      clearTimeout(timer)
      if (control.tagName === 'INPUT' && control.type !== 'datetime-local') timer = setTimeout(changed, WAIT_MS)
    })
  }
  const isShown = (pair) => pair[0].isMore !== true || valueOf(pair).length > 0
  const rest = inputs.filter((pair) => !isShown(pair)).map(([, { node }]) => node)
  const more = rest.length === 0 ? null : h('details', { class: 'more' }, h('summary', {}, 'More filters'), h('div', { class: 'filter' }, ...rest))
  const submit = (event) => {
    event.preventDefault()
    applied = null
    changed()
  }
  const rows = [h('div', { class: 'filter' }, ...inputs.filter(isShown).map(([, { node }]) => node)), ...inputs.map(([, { chips }]) => chips), more]
  const label = name === undefined ? 'Filters' : `Filters: ${title}`
  const node = inputs.length === 0 ? null : h('form', { class: 'filters', role: 'search', 'aria-label': label, onsubmit: submit }, ...rows)
  return {
    node,
    query,
    clear,
    /** Sets a filter, or adds a value to one that takes several. */
    set: (filterName, value) => {
      const [, { control, read, write }] = inputs.find(([filter]) => filter.name === filterName)
      if (write === undefined) control.value = value
      else write([...new Set([...read(), value])])
      changed()
    },
    isActive: () => Object.keys(query()).length > 0,
    sort: () => sort,
    setSort: (value) => {
      sort = value
      save()
    },
  }
}

/** Sets query parameters in the address of the page. Removes those that are null or ''. */
export function replaceAddress(values) {
  history.replaceState(history.state, '', withQuery(location.pathname + location.search, values) + location.hash)
}

let listCount = 0

function makeInput(filter, values) {
  if (filter.isMany) return makeChips(filter, values)
  const { name, label, type = 'search', options, suggestions } = filter
  const given = values[0] ?? null
  if (options !== undefined) {
    const control = h('select', { name }, h('option', { value: '' }, 'Any'))
    // The value may belong to an option that is still loading.
    if (given !== null) control.append(h('option', { value: given }, given))
    control.value = given ?? ''
    fill(options, (values) => {
      const { value } = control
      const pairs = values.map((option) => (Array.isArray(option) ? option : [option, option]))
      if (value !== '' && !pairs.some(([known]) => String(known) === value)) pairs.push([value, value])
      control.replaceChildren(h('option', { value: '' }, 'Any'), ...pairs.map(([known, text]) => h('option', { value: known }, text)))
      control.value = value
    })
    return { node: h('label', {}, label, control), control }
  }
  const id = `suggestions-${++listCount}`
  const value = given !== null && type === 'datetime-local' ? localTime(given) : given
  const control = h('input', { name, type, value, autocomplete: 'off', list: suggestions && id })
  if (suggestions === undefined) return { node: h('label', {}, label, control), control }
  const known = h('datalist', { id })
  fill(suggestions, (values) => known.replaceChildren(...values.map((option) => h('option', Array.isArray(option) ? { value: option[0], label: option[1] } : { value: option }))))
  return { node: h('label', {}, label, control, known), control }
}

/** Makes a select whose chosen values become chips with a button that removes them. */
function makeChips({ name, label, options }, given) {
  const chosen = new Set(given)
  const chips = h('div', { class: 'chips chosen', role: 'group', 'aria-label': label })
  const control = h('select', { name }, h('option', { value: '' }, 'Any'))
  const remove = (value) => {
    write([...chosen].filter((other) => other !== value))
    control.dispatchEvent(new Event('change'))
    control.focus()
  }
  const write = (values) => {
    chosen.clear()
    for (const value of values) chosen.add(value)
    chips.replaceChildren(...[...chosen].map((value) => h('button', { class: 'chip live', type: 'button', 'aria-label': `Remove ${label.toLowerCase()} ${value}`, onclick: () => remove(value) }, `${value} ×`)))
  }
  control.addEventListener('change', () => {
    if (control.value !== '') write([...chosen, control.value])
    control.value = ''
  })
  fill(options, (values) => control.append(...values.map((option) => h('option', { value: [option].flat()[0] }, [option].flat().at(-1)))))
  write(given)
  return { node: h('label', {}, label, control), control, chips, read: () => [...chosen], write }
}

/** Shows values that are given, or loaded by a function. A failure leaves the input without them. */
function fill(source, show) {
  if (typeof source !== 'function') return show(source)
  Promise.resolve(source()).then(show, () => {})
}
