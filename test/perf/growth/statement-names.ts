import { globSync } from 'node:fs'
import { join } from 'node:path'

/** Names the statements in `pg_stat_statements` by finding their texts among the reads of the code. */

const SQL = join(import.meta.dirname, '../../../sql')

/** Returns a function that maps a statement's text to its name, or to an abbreviated text if it has none. */
export async function createStatementNamer(): Promise<(text: string) => string> {
  const names = new Map<string, string>()
  for (const file of globSync('{,*/}*.ts', { cwd: SQL })) {
    if (file.endsWith('main.ts')) continue
    const exported: unknown[] = Object.values(await import(join(SQL, file)))
    const scopes = exported.flatMap((value) => (isObject(value) ? [value, ...Object.values(value)] : []))
    for (const value of scopes) if (isRead(value)) names.set(normalizeText(value.text), value.name)
  }
  return (text) => names.get(normalizeText(text)) ?? text.replace(/\s+/g, ' ').trim().slice(0, 90)
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
const isRead = (value: unknown): value is { name: string; text: string } =>
  isObject(value) && 'name' in value && 'text' in value && typeof value.text === 'string'

/** Removes constants and parameters, because `pg_stat_statements` shows both as `$n`. */
const normalizeText = (text: string): string =>
  text
    .replace(/--.*$/gm, '')
    .replace(/\/\*.*?\*\//g, '')
    .replace(/(?:\b[Ee])?'(?:[^']|'')*'|\$\d+|\b\d+(?:\.\d+)?\b|\b(?:true|false|null)\b/g, '?')
    .replace(/\?(\s*,\s*\?)*/g, '?')
    .replace(/\s+/g, '')
