/** Text as markup that shows it and nothing else, also inside of a quoted attribute. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
