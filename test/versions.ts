import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { readVersion } from './releases.ts'
import { collectLines, SECRET } from './service.ts'

/** Creates future versions: copies of this code with schema changes, like those of later releases. */

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const COPIED_PATHS = ['edge', 'sql', 'tasks', 'workers', 'Procfile']

/** Changes of a version: paths with the text of a new file, or with replacements in an existing one. */
type Changes = Readonly<Record<string, string | readonly (readonly [old: string, replacement: string])[]>>

export interface Version {
  readonly number: string
  readonly root: URL
}

export const CURRENT_VERSION: Version = {
  number: readVersion(join(ROOT, 'package.json')),
  root: pathToFileURL(ROOT),
}

function computeNextMinor({ number }: Version): string {
  const [major, minor] = number.split('.')
  return `${major}.${Number(minor) + 1}.0`
}

/** Creates the folder of a version, which is removed after the file. */
function createVersion(number: string, before: Version, changes: Changes): Version {
  const folder = mkdtempSync(join(tmpdir(), `millrace-${number}-`))
  after(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of COPIED_PATHS)
    cpSync(fileURLToPath(new URL(name, before.root)), join(folder, name), { recursive: true })
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const manifest = JSON.parse(readFileSync(new URL('package.json', before.root), 'utf8')) as object
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...manifest, version: number }))
  for (const [path, change] of Object.entries(changes)) {
    const file = join(folder, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, typeof change === 'string' ? change : applyReplacements(file, change))
  }
  return { number, root: pathToFileURL(`${folder}/`) }
}

function applyReplacements(file: string, replacements: readonly (readonly [string, string])[]): string {
  let text = readFileSync(file, 'utf8')
  for (const [old, replacement] of replacements) {
    assert.equal(text.split(old).length, 2, `${file} has ${old} once`)
    text = text.replace(old, () => replacement)
  }
  return text
}

export interface Command {
  /** Output lines so far. */
  readonly log: readonly string[]
  /** Resolves with the exit status. */
  readonly ended: Promise<number | null>
}
/** Runs a command of a version on a database. The command is killed after the test. */
function runCommand({ root }: Version, command: string, url: string): Command {
  const log: string[] = []
  const child: ChildProcess = spawn('sh', ['-c', command], {
    cwd: fileURLToPath(root),
    env: { ...process.env, DATABASE_URL: url, SECRET_KEY: SECRET, NODE_ENV: 'test' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  after(() => child.kill())
  for (const output of [child.stdout!, child.stderr!]) collectLines(output, log)
  return { log, ended: once(child, 'close').then(([code]) => code as number | null) }
}

/** Runs the `release` command of the version's Procfile. */
export function runRelease(version: Version, url: string): Command {
  const line = /^release: (.+)$/m.exec(readFileSync(new URL('Procfile', version.root), 'utf8'))![1]!
  return runCommand(version, line, url)
}

/** Runs the version's `npm run restore FILE`. */
export function runRestore(version: Version, url: string, file: string): Command {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', version.root), 'utf8')) as {
    scripts: { restore: string }
  }
  return runCommand(version, `exec node_modules/.bin/${scripts.restore} '${file}'`, url)
}
/**
 * Changes of the next version, which must work while the previous version still runs. An organization's description
 * moves to a column `about`. Some tables get columns, a busy table gets an index, and a table of reminders with a
 * trigger is new.
 */
export const EXPANDING_CHANGES: Changes = {
  'sql/migrations/900001-organization-about.sql': `
      -- \`about\` replaces \`description\`; a trigger copies each to the other until no code writes the old one.
      alter table organization add column about text;
      alter table organization add constraint organization_about_check check (length(about) between 1 and 2000) not valid;
      create function organization_about() returns trigger language plpgsql as $$
      begin
        if tg_op = 'INSERT' then
          new.about := coalesce(new.about, new.description);
          new.description := new.about;
        elsif new.about is distinct from old.about then
          new.description := new.about;
        else
          new.about := new.description;
        end if;
        return new;
      end $$;
      create trigger organization_about before insert or update of about, description on organization
        for each row execute function organization_about();`,
  'sql/migrations/900002-organization-about-rows.sql': `
      update organization set about = description where about is distinct from description;
      alter table organization validate constraint organization_about_check;`,
  'sql/migrations/900003-document-shelf.sql': `alter table document add column shelf text default 'unsorted';`,
  'sql/migrations/900004-job-origin.sql': `alter table job add column origin text default 'api';`,
  'sql/migrations/900005-reminder.sql': `
      create table reminder (
        id bigint generated always as identity,
        document_id bigint not null,
        due_at timestamptz not null,
        noted_at timestamptz,
        constraint reminder_pkey primary key (id),
        constraint reminder_document_id_fkey foreign key (document_id) references document (id) on delete cascade
      );
      create index reminder_document_id_idx on reminder (document_id);`,
  'sql/migrations/900006-job-name.sql':
    '-- not in a transaction\ncreate index concurrently job_name_idx on job (name, ordinal);',
  // The trigger's table is missing in the baseline.
  'sql/documents/functions/reminder_noted.sql': `
      create or replace function reminder_noted() returns trigger language plpgsql as $$
      begin
        new.noted_at := now();
        return new;
      end $$;
      create or replace trigger reminder_noted before insert on reminder for each row execute function reminder_noted();`,
  'sql/orgs/functions/organization_json.sql': [['o.description', 'o.about']],
  // This change causes all functions and triggers of the ledger to be applied again.
  'sql/jobs/functions/job_finish.sql': [['create or replace', '-- Changed.\ncreate or replace']],
  'sql/orgs/orgs.ts': [
    ['(name, slug, description, is_active', '(name, slug, about, is_active'],
    ['description = case when', 'about = case when'],
    ['then description else', 'then about else'],
  ],
}

export const createExpandedVersion = (): Version =>
  createVersion(computeNextMinor(CURRENT_VERSION), CURRENT_VERSION, EXPANDING_CHANGES)

/** Returns the changes of the version after the next: it drops a column that no process has used since `number`. */
export const createContractingChanges = (number: string): Changes => ({
  'sql/migrations/900007-organization-description.sql': `
-- contracts: ${number}
drop trigger organization_about on organization;
drop function organization_about();
alter table organization drop column description;`.trimStart(),
})

export const createContractedVersion = (before: Version): Version =>
  createVersion(computeNextMinor(before), before, createContractingChanges(before.number))
