// What every signed-in page has.
import { bindCopyButtons } from "./copy.js";
import { bindThemeSwitch } from "./theme.js";

bindThemeSwitch();
bindCopyButtons();
