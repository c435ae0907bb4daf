// Input for the scopes of an API key: a table with a level for each area.

import { h } from '../parts/dom.js'

const NAMES = {
  '*': 'All areas',
  ai: 'Chat and AI usage',
  blog: 'Blog',
  comms: 'Messages',
  llm: 'Language models',
  rag: 'Collections and search',
  'worker-queues': 'Worker queues',
}
const LEVELS = ['', 'read', 'write']
const LEVEL_NAMES = { '': 'None', read: 'Read', write: 'Write' }

const nameOf = (area) => NAMES[area] ?? area.charAt(0).toUpperCase() + area.slice(1)

/** Makes the input. The options of the field are scopes such as `jobs:read`; others than read and write get a box. */
export function scopesInput(field) {
  const areas = [...new Set(field.options.filter((scope) => /:(?:read|write)$/.test(scope)).map((scope) => scope.split(':')[0]))]
  const others = field.options.filter((scope) => !/:(?:read|write)$/.test(scope)).map((scope) => [scope, h('input', { type: 'checkbox' })])
  const rows = new Map(areas.map((area) => [area, makeRow(area, field.options)]))
  const head = h('div', { class: 'scope soft', 'aria-hidden': 'true' }, h('span', {}, 'Area'), ...LEVELS.map((level) => h('span', {}, LEVEL_NAMES[level])))
  const all = rows.get('*')
  const showAll = () => {
    if (all === undefined) return
    const covered = LEVELS.indexOf(levelOf(all))
    for (const [area, { radios }] of rows) if (area !== '*') radios.forEach((radio, i) => (radio.disabled = i > 0 && i <= covered))
  }
  const boxes = others.map(([scope, box]) => h('label', { class: 'box' }, box, scope === 'worker-queues:work' ? 'Take jobs of worker queues' : scope))
  const node = h('div', { class: 'scopes', onchange: showAll }, head, ...[...rows.values()].map(({ node: row }) => row), ...boxes)
  const read = () => [
    ...[...rows].flatMap(([area, row]) => (levelOf(row) === '' ? [] : [`${area}:${levelOf(row)}`])),
    ...others.filter(([, box]) => box.checked).map(([scope]) => scope),
  ]
  const write = (scopes) => {
    for (const [area, { radios }] of rows) {
      const level = ['write', 'read'].find((one) => scopes?.includes(`${area}:${one}`)) ?? ''
      radios[LEVELS.indexOf(level)].checked = true
    }
    for (const [scope, box] of others) box.checked = scopes?.includes(scope) === true
    showAll()
  }
  return { node, control: rows.get(areas[0]).radios[0], isGroup: true, read, write }
}

const levelOf = ({ radios }) => LEVELS[radios.findIndex((radio) => radio.checked)] ?? ''

function makeRow(area, scopes) {
  const isOffered = (level) => level === '' || scopes.includes(`${area}:${level}`)
  const radios = LEVELS.map((level) => h('input', { type: 'radio', name: `scope ${area}`, value: level, checked: level === '', disabled: !isOffered(level), 'aria-label': `${nameOf(area)}: ${LEVEL_NAMES[level].toLowerCase()}` }))
  const cells = radios.map((radio) => h('label', {}, radio))
  return { radios, node: h('div', { class: 'scope', role: 'radiogroup', 'aria-label': nameOf(area) }, h('span', {}, nameOf(area)), ...cells) }
}

/** Says what scopes allow, such as `Read: Jobs. Write: Blog.` */
export function describeScopes(scopes) {
  const byLevel = Map.groupBy(scopes, (scope) => scope.split(':')[1])
  return [...byLevel].toSorted().map(([level, list]) => `${level.charAt(0).toUpperCase()}${level.slice(1)}: ${list.map((scope) => nameOf(scope.split(':')[0])).join(', ')}.`).join(' ')
}
