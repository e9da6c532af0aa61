// Formats figures for display.

/** Formats bits per second. */
export function bits(value: number | null): string {
  if (value === null) return "–";
  for (const [unit, size] of [["Gbit/s", 1e9], ["Mbit/s", 1e6], ["kbit/s", 1e3]] as const) {
    if (value >= size) return `${short(value / size)} ${unit}`;
  }
  return `${Math.round(value)} bit/s`;
}

/** Formats microseconds as milliseconds, or as seconds from one second on. */
export function time(us: number | null): string {
  if (us === null) return "–";
  if (us >= 1e6) return `${short(us / 1e6)} s`;
  return `${us < 9950 ? (us / 1e3).toFixed(1) : Math.round(us / 1e3)} ms`;
}

/** Formats microseconds in the unit that suits them: µs, ms or s. */
export function fine(us: number): string {
  return us < 1000 ? `${Math.round(us)} µs` : time(us);
}

/** Formats a time in the past, in seconds, minutes or hours. */
export function since(us: number): string {
  const seconds = Math.round(us / 1e6);
  if (seconds < 120) return `${seconds} s ago`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
}

/** Formats a rate in samples per second. */
export function hertz(value: number): string {
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} Hz`;
}

/** Formats a part of a whole. */
export function percent(part: number, whole: number): string {
  return `${Math.round((part / whole) * 100)} %`;
}

/** Formats a count. */
export function count(value: number): string {
  return value.toLocaleString("en").replaceAll(",", " ");
}

/** Converts "deadline_missed" to words. */
export function words(reason: string): string {
  return reason.replaceAll("_", " ");
}

function short(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
