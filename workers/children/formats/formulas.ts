/** Shows formulas whose values a workbook does not store. */

/** A cell by its zero-based row and column. */
export interface CellPosition {
  readonly row: number
  readonly column: number
}

/** Returns the value of a formula if it is a constant or the name of a link, else the formula. */
export function showFormula(formula: string): string {
  const link = /^HYPERLINK\([\s\S]*[,;]\s*"((?:[^"]|"")*)"\s*\)$/i.exec(formula)?.[1]
  const address = /^HYPERLINK\(\s*"((?:[^"]|"")*)"\s*\)$/i.exec(formula)?.[1]
  const constant = /^"((?:[^"]|"")*)"$/.exec(formula)?.[1]
  const words = link ?? address ?? constant
  if (words !== undefined) return words.replaceAll('""', '"')
  return /^-?\d+(\.\d+)?$/.test(formula) ? formula : `=${formula}`
}

// A string, or a reference to a cell, which is relative unless it has dollar signs.
const REFERENCES = /"[^"]*"|'[^']*'|(?<![\w.$])(\$?)([A-Z]{1,3})(\$?)(\d{1,7})(?![\w(.])/g

/** Moves the relative references of a shared formula from its first cell to another (ECMA-376, part 1, 18.3.1.40). */
export function moveFormula(formula: string, from: CellPosition, to: CellPosition): string {
  return formula.replace(REFERENCES, (found, fixedColumn, letters, fixedRow, digits) => {
    if (letters === undefined) return found
    const column = fixedColumn ? letters : nameColumn(parseColumn(letters)! + to.column - from.column)
    const row = fixedRow ? digits : Math.max(1, Number(digits) + to.row - from.row)
    return `${fixedColumn}${column}${fixedRow}${row}`
  })
}

/** Parses the zero-based column of a reference such as `AB12`; null if it has no column. */
export function parseColumn(reference: string): number | null {
  const [letters] = /^[A-Z]{1,3}/.exec(reference) ?? []
  if (letters === undefined) return null
  return [...letters].reduce((sum, letter) => 26 * sum + letter.charCodeAt(0) - 64, 0) - 1
}

/** Returns the letters of a zero-based column. */
export function nameColumn(column: number): string {
  let name = ''
  for (let left = Math.max(0, column) + 1; left > 0; left = Math.floor((left - 1) / 26))
    name = String.fromCharCode(65 + ((left - 1) % 26)) + name
  return name
}
