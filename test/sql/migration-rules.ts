/**
 * Rules for migrations, which run while processes of the previous version still work. They must not break those
 * processes' statements or lock a table for long. The header `-- contracts: VERSION` lifts the rules. It names the
 * first release that no longer used the removed parts. The parser covers only this repository's SQL style.
 */

export interface MigrationContext {
  /** Versions that were released. */
  readonly released: readonly string[]
  /** Texts of the migrations before this one. */
  readonly earlier?: readonly string[]
  /** Tables whose row type a function returns. A migration that changes such a table must also change the function. */
  readonly rowTypes?: ReadonlySet<string>
}

interface Rule {
  readonly pattern: RegExp
  readonly reason: string
}

const SCANS_TABLE_MESSAGE =
  'checks all rows under a lock: add it "not valid", and validate it in a later migration'
const REWRITES_TABLE_MESSAGE = 'rewrites the table under a lock'
const BREAKS_PREVIOUS_VERSION_MESSAGE = 'breaks the previous version'

const STATEMENT_RULES: readonly Rule[] = [
  { pattern: /^drop /, reason: BREAKS_PREVIOUS_VERSION_MESSAGE },
  { pattern: /^alter (?!table).* rename /, reason: BREAKS_PREVIOUS_VERSION_MESSAGE },
  { pattern: /^truncate /, reason: BREAKS_PREVIOUS_VERSION_MESSAGE },
  { pattern: /^(cluster|lock|vacuum full) /, reason: 'locks a table' },
]

// Rules for the actions of `alter table`.
const ALTER_TABLE_RULES: readonly Rule[] = [
  { pattern: /^drop (?!constraint)/, reason: BREAKS_PREVIOUS_VERSION_MESSAGE },
  { pattern: /^rename /, reason: BREAKS_PREVIOUS_VERSION_MESSAGE },
  { pattern: /^alter (column )?\S+ drop default/, reason: BREAKS_PREVIOUS_VERSION_MESSAGE },
  { pattern: /^alter (column )?\S+ (set data )?type /, reason: REWRITES_TABLE_MESSAGE },
  { pattern: /^add (?!constraint).* not null(?!.* default )/, reason: BREAKS_PREVIOUS_VERSION_MESSAGE },
  {
    pattern: /^add (?!constraint).* (generated |default (?!now\()\w+\()|^add (column )?\S+ \w*serial/,
    reason: REWRITES_TABLE_MESSAGE,
  },
  {
    pattern: /^add (?!constraint).* (references|check|unique|primary key)\b/,
    reason: 'has a constraint: add that by itself, "not valid"',
  },
  { pattern: /^add constraint (?!.* (not valid|using index \S+)$)/, reason: SCANS_TABLE_MESSAGE },
]

/** Returns the rules that a migration violates; empty if the previous version can keep running during the migration. */
export function findViolations(
  text: string,
  { released, earlier = [], rowTypes = new Set() }: MigrationContext,
): string[] {
  const contracts = /^(?:--.*\n)*-- contracts: (\S+)\n/.exec(text)?.[1]
  if (contracts !== undefined)
    return released.includes(contracts) ? [] : [`contracts: ${contracts} is no release of CHANGELOG.md`]
  const statements = splitStatements(text)
  const isNew = findNewTables(statements)
  const before = [...earlier.flatMap(splitStatements), ...statements].join('; ')
  return statements.flatMap((statement) => {
    const reasons = STATEMENT_RULES.filter(({ pattern }) => pattern.test(statement)).map(
      ({ reason }) => reason,
    )
    const [, table, actions] = /^alter table (?:if exists )?(?:only )?(\S+) (.*)$/.exec(statement) ?? []
    if (table !== undefined && !isNew(table)) {
      const parts = splitOutsideParentheses(actions!, ',')
      for (const action of parts) {
        reasons.push(
          ...ALTER_TABLE_RULES.filter(({ pattern }) => pattern.test(action)).map(({ reason }) => reason),
        )
        if (requiresScan(action, before)) reasons.push(SCANS_TABLE_MESSAGE)
      }
      if (rowTypes.has(table) && parts.some((action) => /^add (?!constraint)/.test(action)))
        reasons.push('is the row of a function, which fails until it is changed: make a new table')
    }
    const indexed = /^create (?:unique )?index (?!concurrently).*? on (?:only )?([^\s(]+)/.exec(
      statement,
    )?.[1]
    if (indexed !== undefined && !isNew(indexed))
      reasons.push('keeps all from writing: build it "concurrently"')
    return reasons.map((reason) => `${statement}: ${reason}`)
  })
}

/** True if `set not null` scans the whole table, because no validated check of the same condition exists. */
function requiresScan(action: string, before: string): boolean {
  const column = /^alter (?:column )?(\S+) set not null/.exec(action)?.[1]
  if (column === undefined) return false
  const checks = before.matchAll(/add constraint (\S+) check \((\S+) is not null\)/g)
  return ![...checks].some(
    ([, name, checked]) => checked === column && before.includes(`validate constraint ${name}`),
  )
}

function findNewTables(statements: readonly string[]): (table: string) => boolean {
  const made = statements.map(
    (statement) => /^create table (?:if not exists )?([^\s(]+)/.exec(statement)?.[1],
  )
  return (table) => made.includes(table)
}

/** Splits text into statements of one line each, in lower case, without comments and the contents of strings. */
function splitStatements(text: string): string[] {
  const plain = text
    .replace(/(\$\w*\$)[\s\S]*?\1/g, "''")
    .replace(/'(?:[^']|'')*'/g, "''")
    .replace(/--.*$/gm, ' ')
    .replace(/\s+/g, ' ')
  return splitOutsideParentheses(plain.toLowerCase(), ';')
}

/** Splits text at separators that are outside of parentheses. */
function splitOutsideParentheses(text: string, separator: string): string[] {
  const parts = ['']
  let depth = 0
  for (const letter of text) {
    if (letter === '(') depth++
    if (letter === ')') depth--
    if (letter === separator && depth === 0) parts.push('')
    else parts[parts.length - 1] += letter
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '')
}
