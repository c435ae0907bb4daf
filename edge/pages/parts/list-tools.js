// Tools of a list: the menu of its columns, and the bar that acts on selected rows.

import { menu } from './actions.js'
import { announce, h, setText } from './dom.js'
import { replaceAddress } from './filters.js'
import { formatCount } from './format.js'

/** Makes a menu that hides columns. The address of the page names those that differ from the default. */
export function columnChooser(name, columns, onChange) {
  const parameter = name === undefined ? 'columns' : `${name}.columns`
  const optional = columns.filter(({ kind, isFixed }) => kind !== 'name' && isFixed !== true)
  const changed = new Set((new URLSearchParams(location.search).get(parameter) ?? '').split(',').filter(Boolean))
  const isShown = (column) => changed.has(column.name) === (column.isHidden === true)
  if (optional.length < 4) return { node: null, isShown: ({ isHidden }) => isHidden !== true }
  const toggle = (column) => (event) => {
    if (event.target.checked === (column.isHidden !== true)) changed.delete(column.name)
    else changed.add(column.name)
    replaceAddress({ [parameter]: [...changed].join(',') })
    onChange()
  }
  const boxes = optional.map((column) => h('label', { class: 'box' }, h('input', { type: 'checkbox', checked: isShown(column), onchange: toggle(column) }), column.name))
  return { node: menu('Columns', ...boxes), isShown }
}

/** Makes the checkboxes of rows, and the bar that acts on those selected. */
export function selectionBar(bulk, state, key, api) {
  const text = h('span', {})
  const chosen = () => state.items.filter((item) => state.selected.has(key(item)))
  const buttons = bulk.map(([label, run]) =>
    h('button', { class: 'plain', type: 'button', onclick: () => Promise.resolve(run(chosen(), api())).catch((error) => announce(`${label}: ${error.message}`, { isBad: true })) }, label),
  )
  const node = bulk.length === 0 ? null : h('div', { class: 'actions selection', hidden: true, role: 'group', 'aria-label': 'Selected rows' }, text, ...buttons)
  let allBox = null
  const update = () => {
    if (node === null) return
    node.hidden = state.selected.size === 0
    setText(text, `${formatCount(state.selected.size)} selected`)
    if (allBox !== null) allBox.checked = state.selected.size > 0 && state.selected.size === state.items.length
  }
  return {
    node,
    update,
    box: (item, label) => {
      const box = h('input', { type: 'checkbox', 'aria-label': `Select ${label}`, checked: state.selected.has(key(item)) })
      box.addEventListener('change', () => {
        if (box.checked) state.selected.add(key(item))
        else state.selected.delete(key(item))
        update()
      })
      return box
    },
    all: () => {
      allBox = h('input', { type: 'checkbox', 'aria-label': 'Select all' })
      allBox.addEventListener('change', () => {
        state.selected = new Set(allBox.checked ? state.items.map(key) : [])
        for (const box of node.parentElement.querySelectorAll('td.select input')) box.checked = allBox.checked
        update()
      })
      return allBox
    },
  }
}
