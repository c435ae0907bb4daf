import { after, describe, test } from 'node:test'
import { findCredentialsByEmail, findCredentialsById, recordLogin } from '../../sql/accounts/accounts.ts'
import {
  consumeChallenge,
  deleteExpiredChallenges,
  deletePasskey,
  findPasskey,
  listCredentialIds,
  readPasskeys,
  recordPasskeyUse,
  renamePasskey,
} from '../../sql/accounts/passkeys.ts'
import { deleteTotp, findTotp, insertTotp, readTotp } from '../../sql/accounts/totp.ts'
import { connect } from '../../sql/connections/driver.ts'
import type { Query } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { decideLogin } from '../../sql/limits/limits.ts'
import { digestOf } from '../../tasks/accounts/tokens.ts'
import { createTestDatabase } from '../database.ts'
import { SEALED_TEXT } from '../keys.ts'
import { assertWriteByIndex, fillOrganizations, planRead, testReads } from './plans-help.ts'

/** Sign-ins use an index, with 2000 accounts and 5000 passkeys. */

const { url, query } = await createTestDatabase()
await fillOrganizations(query)
const ID = `('01980000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid`
await query(
  `insert into passkey (id, account_id, credential_id, public_key, counter, transports, name, is_synced)
   select ${ID}, 1 + n % 2000, sha256(n::text::bytea), '\\x01', 0, '{}', 'n', true from generate_series(1, 5000) n`,
)
await query(
  `insert into passkey_challenge (challenge, account_id, expires_at)
   select sha256(n::text::bytea), case when n % 2 = 0 then n end, now() + (n - 50) * interval '1 s' from generate_series(1, 5000) n`,
)
await query(
  `insert into account_totp (secret, id, account_id, confirmed_at) select 'aaaaaaaa.AAAA', ${ID}, n, now() from generate_series(1, 2000) n`,
)
await query('analyze')
const client = await connect({ url, applicationName: 'plans' })
after(() => client.end())

describe('reads by index', () => {
  const reads = [
    planRead('the passkeys of an account', readPasskeys, 5, null, 0, 100),
    planRead('the one-time codes of an account', readTotp, 5),
  ] as const
  testReads(client, reads)
})

let count = 100
const idOf = (n: number): string => `01980000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
const nextNumber = (): number => ++count
const hashNumber = (n: number): Buffer => digestOf(String(n))

const writes: Readonly<Record<string, () => Query<unknown>>> = {
  'the owner of a passkey': () => findPasskey(hashNumber(nextNumber())),
  'the credential ids of an account': () => listCredentialIds(nextNumber()),
  'recording the use of a passkey': () => recordPasskeyUse(idOf(nextNumber()), 1, true),
  'renaming a passkey': () => renamePasskey(1 + nextNumber(), idOf(count), 'x'),
  'deleting a passkey': () => deletePasskey(1 + nextNumber(), idOf(count)),
  'a challenge': () => consumeChallenge(hashNumber(nextNumber()), null),
  'deleting expired challenges': () => deleteExpiredChallenges(2),
  'one-time codes': () => findTotp(nextNumber()),
  'adding one-time codes': () => insertTotp(uuidv7(), nextNumber(), SEALED_TEXT),
  'deleting one-time codes': () => deleteTotp(nextNumber()),
  'a login with a one-time code': () =>
    decideLogin(hashNumber(nextNumber()), true, 5, 900, { totpId: idOf(count), step: 7, recovery: null }),
  'a login': () => recordLogin(nextNumber(), { passwordHash: 'x', totpId: idOf(count) }),
  'credentials by address': () => findCredentialsByEmail(`a${nextNumber()}@example.com`),
  'credentials by account': () => findCredentialsById(nextNumber()),
}

// Only accounts and passkeys have many rows here.
describe('writes by index', () => {
  for (const [what, make] of Object.entries(writes))
    test(what, () => assertWriteByIndex(client, make, 'account', 'passkey'))
})
