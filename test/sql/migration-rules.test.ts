import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { listMigrationNames, readMigration } from '../../sql/server/migrations.ts'
import { createContractingChanges, EXPANDING_CHANGES } from '../versions.ts'
import { findViolations } from './migration-rules.ts'

/** Migrations must not break processes of the previous version, which still run. */

const root = new URL('../../', import.meta.url)
const read = (path: string): string => readFileSync(new URL(path, root), 'utf8')
const released = [...read('CHANGELOG.md').matchAll(/^## (\d+\.\d+\.\d+)(?! \(unreleased\))/gm)].map(
  ([, version]) => version!,
)
const rowTypes = new Set(
  globSync('sql/*/functions/*.sql', { cwd: root }).flatMap((file) =>
    [...read(file).matchAll(/\breturns (?:setof )?(\w+)/g)].map(([, type]) => type!),
  ),
)

test('no migration breaks the previous version, unless it names the release that stopped using its tables', async () => {
  const names = (await listMigrationNames()).filter((name) => name.endsWith('.sql'))
  const texts = await Promise.all(names.map((name) => readMigration(name)))
  for (const [n, name] of names.entries()) {
    const earlier = texts.slice(0, n)
    assert.deepEqual(findViolations(texts[n]!, { released, earlier, rowTypes }), [], name)
  }
})

const REJECTED_STATEMENTS: readonly (readonly [statement: string, reason: RegExp])[] = [
  ['drop table job_tally', /breaks/],
  ['drop function iso(timestamptz)', /breaks/],
  ['drop index job_queued_idx', /breaks/],
  ['drop trigger job_delete_traces on job', /breaks/],
  ['truncate job_tally', /breaks/],
  ['alter table job drop column label', /breaks/],
  ['alter table job drop label', /breaks/],
  ['ALTER TABLE job ADD COLUMN a text,\n  DROP COLUMN label', /breaks/],
  ['alter table job rename column label to title', /breaks/],
  ['alter table job rename to work', /breaks/],
  ['alter table if exists only job rename label to title', /breaks/],
  ['alter function iso(timestamptz) rename to iso8601', /breaks/],
  ['alter table job alter column label drop default', /breaks/],
  ['alter table job alter column seq type bigint', /rewrites/],
  ['alter table job alter seq set data type bigint', /rewrites/],
  ['alter table job alter column owner_id set not null', /not valid/],
  ['alter table job add column owner integer not null', /breaks/],
  ['alter table job add column key uuid default gen_random_uuid()', /rewrites/],
  ['alter table job add column day date generated always as (date(created_at)) stored', /rewrites/],
  ['alter table job add column n bigserial', /rewrites/],
  ['alter table job add column kind text check (length(kind) > 0)', /constraint/],
  ['alter table job add column owner integer references account (id)', /constraint/],
  ['alter table job add constraint job_seq_check check (seq >= 0)', /not valid/],
  [
    'alter table job add constraint job_owner_id_fkey foreign key (owner_id) references account (id)',
    /not valid/,
  ],
  ['alter table job add constraint job_ordinal_key unique (ordinal)', /not valid/],
  ['create index job_name_idx on job (name)', /concurrently/],
  ['create unique index job_name_key on job(name)', /concurrently/],
  ['lock table job in exclusive mode', /locks/],
  ['alter table payment_sum add column refunds numeric', /row of a function/],
]

const ALLOWED_STATEMENTS: readonly string[] = [
  `alter table job add column origin text default 'api', add at timestamptz default now()`,
  `alter table job add column origin text not null default 'a; drop table job'`,
  'alter table job alter column label drop not null',
  'alter table job alter column label set default 0',
  'alter table job drop constraint job_max_tries_check',
  'alter table job add constraint job_seq_check check (seq >= 0) not valid',
  'alter table job validate constraint job_seq_check',
  'alter table job add constraint job_ordinal_key unique using index job_ordinal_idx',
  '-- not in a transaction\ncreate index concurrently job_name_idx on job (name)',
  'create table reminder (id bigint, constraint reminder_pkey primary key (id)); create index reminder_idx on reminder (id); alter table reminder add constraint reminder_check check (id > 0)',
  '-- Later: drop table job\nupdate job set label = label',
  `create function f() returns trigger language plpgsql as $$ begin drop table x; end $$`,
  `alter table job add constraint job_owner_check check (owner_id is not null) not valid;
   alter table job validate constraint job_owner_check; alter table job alter column owner_id set not null`,
]

describe('a migration', () => {
  for (const [statement, reason] of REJECTED_STATEMENTS)
    test(`is rejected: ${statement}`, () => {
      const found = findViolations(`${statement};`, { released, rowTypes })
      assert.equal(found.length, 1, String(found))
      assert.match(found[0]!, reason)
    })

  for (const statement of ALLOWED_STATEMENTS)
    test(`is allowed: ${statement}`, () =>
      assert.deepEqual(findViolations(`${statement};`, { released, rowTypes }), []))

  test('may contract only what no process has used since a past release', () => {
    const text = '-- Superseded.\n-- contracts: 1.1.0\nalter table job drop column label;\n'
    assert.deepEqual(findViolations(text, { released: ['1.1.0', '1.0.0'] }), [])
    assert.deepEqual(findViolations(text, { released: ['1.0.0'] }), [
      'contracts: 1.1.0 is no release of CHANGELOG.md',
    ])
    assert.equal(findViolations(text.replace('-- contracts', '--'), { released }).length, 1)
  })

  test('may set not null if an earlier migration has validated a check', () => {
    const text = 'alter table job alter owner_id set not null;'
    const check = 'alter table job add constraint job_owner_check check (owner_id is not null) not valid;'
    const validated = 'alter table job validate constraint job_owner_check;'
    assert.deepEqual(findViolations(text, { released, earlier: [check, validated] }), [])
    assert.equal(findViolations(text, { released, earlier: [check] }).length, 1)
  })

  test('of the versions in other tests follows the rules', () => {
    const migrations = (changes: Readonly<Record<string, unknown>>): string[] =>
      Object.keys(changes)
        .filter((path) => path.startsWith('sql/migrations/'))
        .map((path) => String(changes[path]))
    for (const text of migrations(EXPANDING_CHANGES))
      assert.deepEqual(findViolations(text, { released, rowTypes }), [], text)
    const [contracting] = migrations(createContractingChanges('1.1.0'))
    assert.deepEqual(findViolations(contracting!, { released: ['1.1.0'] }), [])
    assert.equal(findViolations(contracting!.replace('contracts', ''), { released }).length, 3)
  })
})
