/** What a check has found. A problem keeps something from working; a note names what is off or could be better. */
export interface Finding {
  readonly level: 'ok' | 'note' | 'problem'
  readonly what: string
  readonly text: string
}

const found =
  (level: Finding['level']) =>
  (what: string, text: string): Finding => ({ level, what, text })

export const ok = found('ok')
export const note = found('note')
export const problem = found('problem')

const MARKS = { ok: 'ok     ', note: 'note   ', problem: 'PROBLEM' } as const

/** Findings as lines, with a last one that counts. */
export function report(findings: readonly Finding[]): string[] {
  const width = Math.max(...findings.map(({ what }) => what.length))
  const count = (wanted: Finding['level'], name: string): string => {
    const found = findings.filter(({ level }) => level === wanted).length
    return `${found} ${name}${found === 1 ? '' : 's'}`
  }
  return [
    ...findings.map(({ level, what, text }) => `${MARKS[level]} ${what.padEnd(width)}  ${text}`),
    `${count('problem', 'problem')}, ${count('note', 'note')}`,
  ]
}
