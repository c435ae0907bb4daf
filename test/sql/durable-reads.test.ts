import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createDurableReads } from '../../sql/reads/durable-reads.ts'
import type { Reader } from '../../sql/reads/reader.ts'

/**
 * Reads over a new connection are repeated after a commit by this process, because a failover may undo what the reads
 * saw. `test/flow/unconfirmed.test.ts` tests this with servers.
 */

const STATEMENT = { name: 's', text: 'select' }

function createTestReads() {
  const log: string[] = []
  let opened = 0
  // Like the real reader, this one connects at the first read, and reconnects at the first read after a cut.
  let isConnected = false
  let failures = 0
  const reader: Reader = {
    text: async () => {
      if (!isConnected) {
        opened++
        isConnected = true
      }
      log.push(`read ${opened}`)
      return `answer of ${opened}`
    },
    texts: async () => [],
    get connectionCount() {
      return opened
    },
    close: async () => {},
  }
  const confirmed = createDurableReads(reader, async () => {
    if (failures-- > 0) throw new Error('no standby')
    log.push('confirm')
  })
  return {
    log,
    read: () => confirmed.text(STATEMENT, []),
    cut: () => {
      isConnected = false
    },
    fail: (times: number) => {
      failures = times
    },
    confirmed,
  }
}

test('repeats only the first read of a connection after a commit', async () => {
  const { log, read, cut } = createTestReads()
  assert.equal(await read(), 'answer of 1')
  await read()
  assert.deepEqual(log, ['read 1', 'confirm', 'read 1', 'read 1'])
  cut()
  log.length = 0
  assert.equal(await read(), 'answer of 2')
  assert.deepEqual(log, ['read 2', 'confirm', 'read 2'])
})

test('makes concurrent reads wait for one commit', async () => {
  const { log, read } = createTestReads()
  await Promise.all([read(), read(), read()])
  assert.equal(log.filter((line) => line === 'confirm').length, 1)
})

test('answers nothing until the commit succeeds', async () => {
  const { read, fail } = createTestReads()
  fail(2)
  for (let n = 0; n < 2; n++) await assert.rejects(read(), /no standby/)
  assert.equal(await read(), 'answer of 1')
})

test('repeats work whose connection was lost meanwhile', async () => {
  const { log, read, cut, confirmed } = createTestReads()
  await read()
  log.length = 0
  let runs = 0
  const result = await confirmed.withDurableReads(async () => {
    if (++runs === 1) cut()
    return read()
  })
  assert.equal(result, 'answer of 2')
  assert.equal(runs, 2)
})
