import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import type { LookupAddress, LookupOptions } from 'node:dns'
import { once } from 'node:events'
import { after, describe, test } from 'node:test'
import { createLookup } from '../../workers/providers/dns-lookup.ts'

/** Host names come from callers, so a slow name must not delay the others. */

// This name server answers by the first label of a name. It ignores names that begin with `silent`.
const asked: string[] = []
const server = createSocket('udp4')
server.on('message', (query, { port, address }) => {
  const name = nameOf(query)
  asked.push(name)
  const isFour = query.readUInt16BE(query.indexOf(0, 12) + 1) === 1
  if (name.startsWith('silent')) return
  const record = Buffer.from('c00c000100010000003c0004cb007107', 'hex')
  const isKnown = name.startsWith('known') && isFour
  const flags = name.startsWith('broken') ? 0x8182 : name.startsWith('known') ? 0x8180 : 0x8183
  const answer = Buffer.concat([query.subarray(0, query.indexOf(0, 12) + 5), ...(isKnown ? [record] : [])])
  answer.writeUInt16BE(flags, 2)
  answer.writeUInt16BE(isKnown ? 1 : 0, 6)
  for (const at of [8, 10]) answer.writeUInt16BE(0, at)
  server.send(answer, port, address)
})
server.bind(0, '127.0.0.1')
await once(server, 'listening')
after(() => server.close())
const servers = [`127.0.0.1:${server.address().port}`]

function nameOf(query: Buffer): string {
  const parts: string[] = []
  for (let at = 12; query[at] !== 0; at += query[at]! + 1)
    parts.push(query.toString('latin1', at + 1, at + 1 + query[at]!))
  return parts.join('.')
}

function lookUp(
  name: string,
  { local = false, ...options }: LookupOptions & { local?: boolean } = { all: true },
) {
  return new Promise<string | LookupAddress[]>((resolve, reject) => {
    createLookup(local, servers)(name, options, (error, found) =>
      error === null ? resolve(found) : reject(error),
    )
  })
}

describe('the addresses of a name', () => {
  test('are those of the name server', async () => {
    assert.deepEqual(await lookUp('known.example'), [{ address: '203.0.113.7', family: 4 }])
    assert.equal(await lookUp('known.example', {}), '203.0.113.7')
  })

  test('do not wait for lookups of other names', async () => {
    const silent = Array.from({ length: 20 }, (_, i) => lookUp(`silent-${i}.example`))
    const given = Promise.allSettled(silent)
    assert.equal(await Promise.race([lookUp('known.example', {}), given]), '203.0.113.7')
  })

  test('are empty if no server knows the name', async () => {
    await assert.rejects(lookUp('unknown.example'), { code: 'ENOTFOUND' })
  })

  test('may be local to this machine if permitted', async () => {
    await assert.rejects(lookUp('localhost'), { code: 'ENOTFOUND' })
    const found = (await lookUp('localhost', { all: true, local: true })) as LookupAddress[]
    assert.ok(found.some(({ address }) => address === '127.0.0.1' || address === '::1'))
    assert.ok(!asked.includes('localhost'))
  })

  test('are not searched further if servers fail', async () => {
    await assert.rejects(lookUp('broken.example', { all: true, local: true }), { code: 'ESERVFAIL' })
  })
})
