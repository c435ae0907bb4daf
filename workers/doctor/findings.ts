/** The result of a check. A problem breaks a feature; a note names a disabled feature or a possible improvement. */
export interface Finding {
  readonly level: 'ok' | 'note' | 'problem'
  readonly name: string
  readonly text: string
}

const createFinding =
  (level: Finding['level']) =>
  (name: string, text: string): Finding => ({ level, name, text })

export const ok = createFinding('ok')
export const note = createFinding('note')
export const problem = createFinding('problem')

const LEVEL_LABELS = { ok: 'ok     ', note: 'note   ', problem: 'PROBLEM' } as const

/** Formats findings as lines; the last line counts problems and notes. */
export function formatReport(findings: readonly Finding[]): string[] {
  const width = Math.max(...findings.map(({ name }) => name.length))
  const count = (level: 'problem' | 'note'): string => {
    const total = findings.filter((finding) => finding.level === level).length
    return `${total} ${level}${total === 1 ? '' : 's'}`
  }
  return [
    ...findings.map(({ level, name, text }) => `${LEVEL_LABELS[level]} ${name.padEnd(width)}  ${text}`),
    `${count('problem')}, ${count('note')}`,
  ]
}
