// Page of sending domains and their DNS records.

import { actionButton, button } from '../parts/actions.js'
import { openDialog, openForm } from '../parts/dialog.js'
import { copyButton, h } from '../parts/dom.js'
import { formatDateTime } from '../parts/format.js'
import { callAndWait } from '../parts/jobs.js'
import { section } from '../parts/states.js'
import { chip, scrollBox, table } from '../parts/table.js'

const PATH = '/api/v1/comms/domains'
const TONES = { verified: 'good', pending: 'warn', not_started: 'warn', temporary_failure: 'warn', failed: 'bad' }
const statusChip = (status) => chip(status.replaceAll('_', ' '), TONES[status] ?? '')

export const page = () => {
  const add = button('Add domain', () => addDomain(part), { kind: '' })
  const part = section({
    title: 'Sending domains',
    note: 'Mail servers accept emails from a domain whose DNS names the provider. Add the records of a domain at its DNS host, then check it.',
    empty: 'There are no sending domains yet.',
    read: readDomains,
    show: (domains) => {
      add.hidden = domains === null
      return domains === null ? setupNotice() : domains.length === 0 ? null : domainTable(domains, part)
    },
    actions: [add],
  })
  return [part]
}

/** Returns the domains; null if no provider of domains is configured. */
const readDomains = () =>
  callAndWait('GET', PATH).catch((error) => {
    if (error.code === 'domain.not_configured') return null
    throw error
  })

const setupNotice = () => h('p', {}, 'Set ', h('code', {}, 'EMAIL_PROVIDER_API_KEY'), ' to a full-access key of Resend in the environment of the service, then restart it.')

function domainTable(domains, part) {
  const { node, body, row } = table('Sending domains', [['Domain', 'name'], ['State', ''], ['Region', ''], ['Added', 'number'], ['', 'act']])
  const buttons = (domain) => h('span', { class: 'actions' }, recordsButton(domain, part), checkButton(domain, part))
  body.append(...domains.map((domain) => row(h('strong', {}, domain.name), statusChip(domain.status), domain.region, domain.created_at && formatDateTime(domain.created_at), buttons(domain))))
  return scrollBox('Sending domains', node)
}

// Adding a domain that exists returns its records and changes nothing.
const recordsButton = ({ name }, part) =>
  actionButton('DNS records', 'Reading…', `DNS records of ${name}`, async () => {
    showRecords(await callAndWait('POST', PATH, { json: { name } }), part)
    return null
  }, true)

const checkDomain = (name) => callAndWait('POST', `${PATH}/${encodeURIComponent(name)}/check`)

const checkButton = ({ name }, part) =>
  actionButton('Check', 'Checking…', `Check ${name}`, async () => {
    const { status } = await checkDomain(name)
    await part.load()
    return status === 'verified' ? `${name} is verified` : `${name} is ${status.replaceAll('_', ' ')}. DNS changes may take hours.`
  }, true)

const addDomain = (part) =>
  openForm('Add sending domain', {
    operation: 'POST /api/v1/comms/domains',
    fields: ['name', 'region'],
    set: { name: { label: 'Domain', placeholder: 'example.com', help: undefined } },
    submit: 'Add domain',
    busy: 'Adding…',
    send: (json) => callAndWait('POST', PATH, { json }),
    done: async (domain) => {
      await part.load()
      showRecords(domain, part)
      return `Added ${domain.name}`
    },
  })

/** Opens the DNS records of a domain, each part with a button that copies it. */
function showRecords(domain, part) {
  const content = h('div', {}, recordTable(domain))
  const check = actionButton('Check DNS', 'Checking…', `Check DNS of ${domain.name}`, async () => {
    const found = await checkDomain(domain.name)
    content.replaceChildren(recordTable(found))
    await part.load()
    return `${found.name} is ${found.status.replaceAll('_', ' ')}`
  }, true)
  openDialog(`DNS records of ${domain.name}`, [content, h('div', { class: 'actions' }, check)], { isWide: true })
}

function recordTable({ name, status, records }) {
  const { node, body, row } = table(`DNS records of ${name}`, [['Type', 'name'], ['Name', 'text'], ['Value', 'text'], ['Priority', 'number'], ['TTL', ''], ['State', '']])
  const copied = (text, what) => h('span', { class: 'copied' }, h('code', {}, text), copyButton(text, what))
  body.append(
    ...records.map((record) =>
      row(
        h('span', {}, h('strong', {}, record.type), record.purpose ? h('span', { class: 'soft' }, ` ${record.purpose}`) : null),
        copied(record.name, `name of the ${record.purpose ?? ''} ${record.type} record`),
        copied(record.value, `value of the ${record.purpose ?? ''} ${record.type} record`),
        record.priority === null ? null : String(record.priority),
        record.ttl,
        record.status && statusChip(record.status),
      ),
    ),
  )
  return h('div', {}, h('p', {}, statusChip(status)), scrollBox(`DNS records of ${name}`, node))
}
