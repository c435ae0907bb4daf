import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { median, ratios } from './stats.ts'

/** A measured figure with one value per round, and optionally the reference's values of the same rounds. */
export interface Finding {
  readonly name: string
  readonly unit: string
  readonly values: readonly number[]
  readonly reference?: { readonly name: string; readonly values: readonly number[] }
  /** Absent if the figure has no bound. */
  readonly target?: Target
}

export interface Target {
  /** The figure to which the bound applies: the median of the ratios or of our values. */
  readonly of: 'ratio' | 'value'
  readonly atLeast?: number
  readonly atMost?: number
  /** Explanation of the bound, if it is not a constant. */
  readonly text?: string
}

export interface Measured {
  readonly rounds: number
  readonly findings: readonly Finding[]
  /** Results of checks, and explanations for readers. */
  readonly notes: readonly string[]
  /** Further figures for closer analysis. */
  readonly details?: unknown
}

interface Row extends Finding {
  readonly median: number
  readonly referenceMedian: number | null
  readonly ratio: number | null
  readonly ratios: readonly number[]
  readonly pass: boolean | null
}

const FOLDER = 'bench-results'

interface RunFacts {
  /** True if the sizes are those of `--quick`. */
  readonly quick: boolean
  readonly seconds: number
}

/** Prints the table of a benchmark and writes `bench-results/NAME.json`. Returns true if every target was met. */
export function publishBenchmark(
  name: string,
  measured: Measured,
  postgres: string,
  { quick, seconds }: RunFacts,
): boolean {
  const rows = measured.findings.map(judgeFinding)
  const machine = {
    cpu: cpus()[0]?.model ?? '',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
  }
  const versions = { node: process.versions.node, postgres, ...readPackageVersions(), commit: readCommit() }
  mkdirSync(FOLDER, { recursive: true })
  const file = {
    benchmark: name,
    machine,
    versions,
    quick,
    seconds,
    rounds: measured.rounds,
    findings: rows,
    notes: measured.notes,
    details: measured.details,
  }
  writeFileSync(join(FOLDER, `${name}.json`), `${JSON.stringify(file, null, 2)}\n`)
  process.stdout.write(
    `\n${name}${quick ? ', quick' : ''}: ${measured.rounds} rounds, ${seconds} s, ${machine.cores} cores of ${machine.cpu}, Node ${versions.node}, PostgreSQL ${postgres}\n`,
  )
  process.stdout.write(formatTable(rows))
  for (const note of measured.notes) process.stdout.write(`  ${note}\n`)
  return rows.every(({ pass }) => pass !== false)
}

export interface Published extends RunFacts {
  readonly benchmark: string
  readonly machine: Readonly<Record<string, unknown>>
  readonly versions: Readonly<Record<string, unknown>>
  readonly rounds: number
  readonly findings: readonly Row[]
  readonly notes: readonly string[]
}

/**
 * Writes `bench-results/report.md` and `report.json` from the published benchmarks, and returns the path of the former.
 */
export function publishReport(names: readonly string[]): string {
  const all = names.map(readPublished)
  const { machine, versions } = all[0]!
  const facts = (of: Readonly<Record<string, unknown>>): string =>
    Object.entries(of)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ')
  const markdown = [
    `# Benchmarks\n\n${facts(machine)}; ${facts(versions)}\n`,
    ...all.map(
      ({ benchmark, quick, seconds, rounds, findings, notes }) =>
        `\n## ${benchmark}\n\n${quick ? 'Quick, ' : ''}${rounds} rounds, ${seconds} s\n\n| what | unit | ours | reference | | ratio | target | |\n|---|---|---|---|---|---|---|---|\n` +
        findings.map((row) => `| ${formatCells(row).join(' | ')} |\n`).join('') +
        notes.map((note) => `\n${note}\n`).join(''),
    ),
  ].join('')
  const json = all.map(({ findings, ...rest }) => ({ ...rest, findings }))
  writeFileSync(
    join(FOLDER, 'report.json'),
    `${JSON.stringify({ machine, versions, benchmarks: json }, null, 2)}\n`,
  )
  writeFileSync(join(FOLDER, 'report.md'), markdown)
  return join(FOLDER, 'report.md')
}

const readPublished = (name: string): Published =>
  JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')) as Published
export const readReport = (file: string): readonly Published[] =>
  (JSON.parse(readFileSync(file, 'utf8')) as { readonly benchmarks: readonly Published[] }).benchmarks

/** Formats the ratio, or the value without a reference, of each finding in an earlier report and now. */
export function compareReports(earlier: readonly Published[], names: readonly string[]): string {
  const keyOf = ({ name, unit, reference }: Row): string => [name, unit, reference?.name ?? ''].join()
  const figureOf = ({ ratio, median }: Row): number => ratio ?? median
  const lines = names.map(readPublished).flatMap(({ benchmark, findings }) => {
    const rows = earlier.find((report) => report.benchmark === benchmark)?.findings ?? []
    const before = new Map(rows.map((row) => [keyOf(row), figureOf(row)]))
    return findings.map((row) => {
      const [was, is] = [before.get(keyOf(row)) ?? Number.NaN, figureOf(row)]
      const unit = row.ratio === null ? row.unit : `to ${row.reference?.name}`
      return [benchmark, row.name, unit, ...[was, is, is / was].map(formatNumber)]
    })
  })
  const head = ['benchmark', 'what', '', 'before', 'now', 'now / before']
  return `\n${alignColumns([head, ...lines]).join('\n')}\n`
}

function judgeFinding(finding: Finding): Row {
  const { values, reference, target } = finding
  const perRound = reference === undefined ? [] : ratios(values, reference.values)
  const row = {
    ...finding,
    median: median(values),
    referenceMedian: reference === undefined ? null : median(reference.values),
    ratio: perRound.length === 0 ? null : median(perRound),
    ratios: perRound,
  }
  const judgedFigure = target?.of === 'ratio' ? row.ratio : row.median
  if (target === undefined || judgedFigure === null) return { ...row, pass: null }
  return {
    ...row,
    pass: judgedFigure >= (target.atLeast ?? -Infinity) && judgedFigure <= (target.atMost ?? Infinity),
  }
}

function formatTable(rows: readonly Row[]): string {
  const head = ['what', 'unit', 'ours', 'reference', '', 'ratio', 'target', '']
  return alignColumns([head, ...rows.map(formatCells)])
    .map((line) => `  ${line}\n`)
    .join('')
}

/** Pads the cells of lines to equal column widths. */
export function alignColumns(lines: readonly (readonly string[])[]): string[] {
  const widths = lines[0]!.map((_, column) => Math.max(...lines.map((line) => line[column]!.length)))
  return lines.map((line) =>
    line
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  )
}

function formatCells(row: Row): string[] {
  const spread =
    row.ratios.length > 1
      ? ` (${formatNumber(Math.min(...row.ratios))}-${formatNumber(Math.max(...row.ratios))})`
      : ''
  return [
    row.name,
    row.unit,
    formatNumber(row.median),
    row.reference?.name ?? '',
    row.referenceMedian === null ? '' : formatNumber(row.referenceMedian),
    row.ratio === null ? '' : `${formatNumber(row.ratio)}${spread}`,
    row.target === undefined ? '' : formatTarget(row.target),
    row.pass === null ? '' : row.pass ? 'pass' : 'MISS',
  ]
}

function formatTarget({ of, atLeast, atMost, text }: Target): string {
  const min = atLeast === undefined ? '' : ` >= ${formatNumber(atLeast)}`
  const max = atMost === undefined ? '' : ` <= ${formatNumber(atMost)}`
  return `${of}${min}${max}${text === undefined ? '' : ` (${text})`}`
}

function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return '-'
  const digits = Math.abs(value) >= 1000 ? 0 : Math.abs(value) >= 100 ? 1 : 2
  return value.toFixed(digits)
}

function readPackageVersions(): Record<string, string> {
  const { dependencies, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as Record<
    'dependencies' | 'devDependencies',
    Record<string, string>
  >
  const all: Record<string, string> = { ...dependencies, ...devDependencies }
  return Object.fromEntries(
    [
      'uWebSockets.js',
      'graphile-worker',
      'pg',
      'slonik',
      'jose',
      'fastify',
      'pdfjs-dist',
      'tesseract.js',
    ].map((name) => [name, all[name] ?? '']),
  )
}

function readCommit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return ''
  }
}
