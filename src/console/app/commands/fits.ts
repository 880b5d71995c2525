/** Returns whether every word of the text occurs in the label. */
export function fits(label: string, text: string): boolean {
  const inLabel = label.toLowerCase()
  return text
    .toLowerCase()
    .split(/\s+/)
    .every(word => inLabel.includes(word))
}
