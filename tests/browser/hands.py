"""Two ways to use a page: by clicking, and with the keyboard alone."""

from __future__ import annotations

from playwright.sync_api import expect

MOST_STEPS = 300


class Mouse:
    """Points at things."""

    def __init__(self, page) -> None:
        self.page = page

    def press(self, what) -> None:
        what.click()

    def write(self, where, text: str) -> None:
        where.fill(text)

    def slide(self, where, value: int) -> None:
        where.fill(str(value))

    def choose(self, where, label: str) -> None:
        where.select_option(label=label)

    def tick(self, what) -> None:
        what.check()


class Keyboard(Mouse):
    """Goes from one thing to the next with Tab."""

    def press(self, what) -> None:
        self.reach(what)
        self.page.keyboard.press("Enter")

    def write(self, where, text: str) -> None:
        self.reach(where)
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.type(text)
        expect(where).to_have_value(text)

    def slide(self, where, value: int) -> None:
        """From the lowest value up to what is wanted."""
        self.reach(where)
        self.page.keyboard.press("Home")
        for _ in range(MOST_STEPS):
            if where.input_value() == str(value):
                return
            self.page.keyboard.press("ArrowRight")
        raise AssertionError(f"the keys do not lead to {value}")

    def choose(self, where, label: str) -> None:
        """From the first of the list down to what is wanted."""
        self.reach(where)
        self.page.keyboard.press("Home")
        for _ in range(where.locator("option").count()):
            if where.evaluate("e => e.selectedOptions[0].label") == label:
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"the keys do not lead to {label}")

    def tick(self, what) -> None:
        self.reach(what)
        if not what.is_checked():
            self.page.keyboard.press("Space")
        expect(what).to_be_checked()

    def reach(self, what) -> None:
        """Tab until it has the focus, which must be seen."""
        what.wait_for()
        self.page.wait_for_load_state()  # Scripts that a page begins with may move the focus.
        for _ in range(MOST_STEPS):
            if what.evaluate("e => e === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab does not lead to {what}")
