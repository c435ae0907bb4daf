import { PageCollector, toShownNumber } from './texts.ts'
import { parseXml } from './xml.ts'

/** Reads charts (ECMA-376, part 1, chapter 21, and the charts of Office 2016). */

// Elements of a series by the row that their values belong to.
const ROWS: Readonly<Record<string, 'name' | 'categories' | 'values'>> = {
  tx: 'name',
  cat: 'categories',
  xVal: 'categories',
  val: 'values',
  yVal: 'values',
}

/** Returns the texts of a chart: titles, and a line for the categories and for each series. */
export function readChartText(xml: string): string {
  const lines = new PageCollector()
  let series: Record<'name' | 'categories' | 'values', string[]> | null = null
  let row: 'name' | 'categories' | 'values' | null = null
  let known = ''
  let value = ''
  let isValue = false
  const addRow = (cells: readonly string[]): void => {
    if (cells.length > 0) lines.add(`${cells.join('\t')}\n`)
  }
  parseXml(xml, {
    open(name) {
      // Values are in `v`, those of Office 2016 directly in `pt`, and words of titles in `t`.
      isValue = name === 'v' || name === 't' || name === 'pt'
      if (isValue) value = ''
      if (name === 'ser') series = { name: [], categories: [], values: [] }
      else if (series !== null) row = ROWS[name] ?? row
    },
    text(data) {
      if (isValue && !lines.isFull) value += data
    },
    close(name) {
      if (isValue && value.trim() !== '') {
        if (name === 't') lines.add(value)
        else if (series !== null && row !== null) series[row].push(toShownNumber(value))
        else lines.add(`${toShownNumber(value)}\n`)
        value = ''
      }
      isValue = false
      if (name === 'p') lines.endLine()
      else if (name in ROWS) row = null
      else if (name === 'ser' && series !== null) {
        const categories = series.categories.join('\t')
        if (categories !== known) addRow(series.categories)
        known = categories
        addRow([...series.name, ...series.values])
        series = null
      }
    },
  })
  return lines.end().join('\n')
}
